# What a machine's owner says of it: /etc/roost/owner.hcl, see roost-owner(5). All of it may be left out.

start_after  = "15m" # without keyboard, mouse, terminal or remote session, until work may begin here
resume_after = "5m"
leave_after  = "10m"

hours     = ["Mon-Fri 08:00-12:00", "Mon-Fri 13:00-18:00"] # when nothing runs
exclusive = ["steam", "obs", "zoom"]                       # while one of these runs, nothing else does

cpus   = 4
memory = "8GiB"

owners = ["ann"] # may pause the machine from elsewhere, too
