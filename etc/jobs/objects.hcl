# Tasks that read from an object store and write to it. The node file of the submit node
# has an object_store block, and the keys are a secret of the user's:
#
#   roost secret set s3 <~/.aws/credentials
job "convert" {
  count   = 10
  command = ["sh", "-c", "mkdir out && tar -C out -xf part.tar && sort common/words >out/words"]
  inputs = {
    "part.tar" = "s3://data/part-${task.index}.tar"
    "common"   = "s3://data/common/"
  }
  outputs  = { "out" = "s3://results/convert/${task.index}" }
  walltime = "1h"
}
