# A long run. Where its machine is lost, or wanted by somebody else, it goes on from its last checkpoint; "roost checkpoint last" takes one now.
# Nothing need be said for that: the block is here for those who want to choose.
job "long" {
  script = <<-END
    i=0
    while [ $i -lt $${STEPS:-3600} ]; do
      i=$((i + 1))
      sleep 1
    done
    echo "$i steps"
  END

  walltime = "24h"

  checkpoint {
    every           = "30m" # unless it is set, the machine chooses by what a checkpoint costs and how often it fails
    before_walltime = true  # "roost retry" goes on from there, with another 24 hours
  }
}
