-- schema: read models
-- breaking: no
-- after: rows
-- Which texts of files the log has is asked at each change of one.

create index audit_log_file_texts on audit_log (left(details->>'digest', 64)) where kind = 'FileKept';
