# A long run. If its machine is lost, or needed by others, it resumes from its last
# checkpoint; "roost checkpoint last" makes one now. That is the default: the block is
# only for those who want to change it.
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
    every           = "30m" # default: chosen from the cost of a checkpoint and the failure rate
    before_walltime = true  # "roost retry" resumes from it, with another 24 hours
  }
}
