# Two tasks that run at the same time, and are saved together. When one of them loses its
# machine or has to leave it, both go on from the last step that both have saved;
# "roost checkpoint last" saves them now. An MPI program would agree on the step by a
# barrier; these save what they have.
job "gang" {
  script = <<-END
    step=0
    mkdir -p saved
    if [ -s saved/step ]; then read step < saved/step; fi
    trap 'echo $step > saved/new && mv saved/new saved/step && exit 85' USR2
    while [ $step -lt $${STEPS:-3600} ]; do
      sleep 1
      step=$((step + 1))
    done
    echo "rank $ROOST_GANG_RANK of $ROOST_GANG_SIZE: $step steps"
  END

  count    = 2
  gang     = true
  apart    = true # on different machines
  transfer = "always"
  notice   = "1m" # in which both save their state and end
  retries  = 3

  checkpoint {
    method    = "self"
    signal    = "USR2" # to both at once
    exit_code = 85     # of both, when they have saved their state
    every     = "30m"
    files     = ["saved/*"]
  }
}
