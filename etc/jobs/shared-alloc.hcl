# Parts of two machines that stay reserved, in which a second user may run jobs, too. You
# pay for them, whoever runs something inside; the other user's jobs are not charged for.
#
#   roost submit shared-alloc.hcl    prints the id of the set, say 12
#   roost alloc allow 12 carol       lets one more user in
#   roost alloc                      what is inside
#
# The other user, of the same submit node, writes in a job of their own:
#
#   in    = "12"
#   place = "any"
#   cpus  = 0.25

alloc "analysis" {
  count  = 2
  cpus   = 0.5
  memory = "256MiB"
  users  = ["bob"]
}
