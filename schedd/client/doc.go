// Package client is the Go client of a pool: programs submit jobs, wait for them, list
// them, read what happened to them and remove them.
//
// The package starts the program roost api and speaks with it through a pipe, in the JSON
// that roost-api(1) and roost-json(7) describe. So it has the rights of the user who runs
// the program, finds the pool as every command does, needs no login or address, and works
// with another release of Roost than the one that it came with. It imports the standard
// library only.
//
// This interface is stable: within a major version of Roost, exported names are only
// added. Fields may be added to its structs, so name the fields of a literal. Records
// that a newer Roost prints with members that are not known here can be read from Raw.
//
//	pool := client.New(client.Options{})
//	defer pool.Close()
//	job, err := pool.Submit(ctx, client.JobSpec{Command: []string{"./simulate"}, CPUs: 4})
//	…
//	ended, err := pool.Wait(ctx, job.ID)
package client
