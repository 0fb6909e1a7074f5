# Made of objects.sub, which was written for HTCondor, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Not carried over:
#   line 4: transfer_input_files    = s3://data/common.tgz, s3://data/part-$(Process).csv, https://example.org/x.tgz
#       only URLs of objects, s3://BUCKET/KEY, are fetched; let the program do it.
#   line 7: aws_access_key_id_file  = /home/ann/.aws/id
#       Keys are a secret of yours at the submit node: roost secret set s3 <~/.aws/credentials.

job "objects" {
  for_each = [{ input = "s3://data/part-0.csv" }, { input = "s3://data/part-1.csv" }]

  executable = "/bin/true"

  transfer = "always"
  inputs   = ["s3://data/common.tgz", "${each.value.input}"]
  outputs = {
    "out.csv" = "s3://results/run7/"
    plots     = "s3://results/run7/"
  }
}
# condor: 1 jobs, 7 carried, 2 lost, 0 differ
