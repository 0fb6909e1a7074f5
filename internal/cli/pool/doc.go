// Package pool holds the commands that show the pool: its nodes and GPUs, and its ads.
//
// roost nodes joins the ads of machines with the jobs that run there, the drains and the
// comments.
package pool
