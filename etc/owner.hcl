# The rules of a machine's owner: /etc/roost/owner.hcl, see roost-owner(5). All settings
# are optional.

start_after  = "15m" # without keyboard, mouse, terminal or remote session, before tasks may start
resume_after = "5m"
leave_after  = "10m"

hours     = ["Mon-Fri 08:00-12:00", "Mon-Fri 13:00-18:00"] # no task runs then
exclusive = ["steam", "obs", "zoom"]                       # no task runs while one of these does

cpus   = 4
memory = "8GiB"

owners = ["ann"] # may pause the machine from elsewhere, too
