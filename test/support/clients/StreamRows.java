import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.DriverManager;
import java.sql.SQLException;

/**
 * Reads one statement with the published JDBC driver and prints its rows, a line each. Arguments: JDBC URL, SQL, user, on how
 * many connections one after the other.
 */
class StreamRows {
    public static void main(String[] args) throws SQLException {
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        int connections = args.length > 3 ? Integer.parseInt(args[3]) : 1;
        for (int i = 0; i < connections; i++) read(args, out);
        out.flush();
    }

    private static void read(String[] args, PrintStream out) throws SQLException {
        try (var connection = DriverManager.getConnection(args[0], args.length > 2 ? args[2] : "jdbc", null);
             var statement = connection.createStatement();
             var rows = statement.executeQuery(args[1])) {
            int columns = rows.getMetaData().getColumnCount();
            var line = new StringBuilder();
            while (rows.next()) {
                line.setLength(0);
                for (int i = 1; i <= columns; i++) line.append(i == 1 ? "" : ",").append(rows.getObject(i));
                out.append(line).append('\n');
            }
        }
    }
}
