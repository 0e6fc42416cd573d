import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ParquetProperties.WriterVersion;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetReader;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.example.GroupReadSupport;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.schema.MessageType;

/** Copies the rows of a Parquet file with the writer of parquet-java: `CopyFile FROM TO SETTINGS`. */
public class CopyFile {
  public static void main(String[] arguments) throws Exception {
    Configuration configuration = new Configuration();
    Path from = new Path(arguments[0]);
    String settings = arguments[2];
    MessageType schema;
    try (ParquetFileReader reader = ParquetFileReader.open(HadoopInputFile.fromPath(from, configuration))) {
      schema = reader.getFileMetaData().getSchema();
    }
    ExampleParquetWriter.Builder builder = ExampleParquetWriter.builder(new Path(arguments[1]))
        .withConf(configuration)
        .withType(schema)
        // A row group ends at the first check after this many bytes.
        .withRowGroupSize(4000L)
        .withMinRowCountForPageSizeCheck(25)
        .withMaxRowCountForPageSizeCheck(25)
        .withPageRowCountLimit(25)
        .withDictionaryEncoding(!settings.contains("plain"))
        .withStatisticsEnabled(!settings.contains("no-statistics"))
        .withWriterVersion(settings.contains("v2") ? WriterVersion.PARQUET_2_0 : WriterVersion.PARQUET_1_0)
        .withCompressionCodec(settings.contains("gzip") ? CompressionCodecName.GZIP : CompressionCodecName.SNAPPY);
    if (settings.contains("filters")) {
      for (String[] path : schema.getPaths()) {
        // The writer has no filters for booleans.
        if (!path[0].equals("bo")) builder.withBloomFilterNDV(String.join(".", path), 20L);
      }
    }
    try (ParquetReader<Group> reader = ParquetReader.builder(new GroupReadSupport(), from).withConf(configuration).build();
        ParquetWriter<Group> writer = builder.build()) {
      for (Group row = reader.read(); row != null; row = reader.read()) writer.write(row);
    }
  }
}
