// Package pool holds the commands that show the pool: its nodes and GPUs, its ads, and
// its cell of negotiators.
//
// roost nodes joins the ads of machines with the jobs that run there, the drains and the
// comments. roost cell speaks to the replicas of the negotiator directly, because it has
// to work where no schedd runs and where no replica leads.
package pool
