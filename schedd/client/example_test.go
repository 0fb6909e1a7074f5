package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/roost-batch/roost/schedd/client"
)

// pool is a client of a scripted roost api. Programs leave Options empty.
var pool = client.New(client.Options{Program: os.Args[0]})

// ExampleClient_Submit submits a job of three tasks and waits for its end.
func ExampleClient_Submit() {
	ctx := context.Background()
	job, err := pool.Submit(ctx, client.JobSpec{
		Name:     "fit",
		Command:  []string{"./fit", "input.dat"},
		Count:    3,
		CPUs:     4,
		Memory:   8 << 30,
		Walltime: 2 * time.Hour,
		Settings: map[string]string{"stdout": client.QuoteTemplate("fit.${task.index}.log")},
	})
	if err != nil {
		log.Fatal(err)
	}
	ended, err := pool.Wait(ctx, job.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(job.ID, ended[0].State, ended[0].Counts["failed"], "of", ended[0].Tasks, "failed")
	// Output: 7.host failed 1 of 3 failed
}

// ExampleClient_Watch shows a job whenever it changes.
func ExampleClient_Watch() {
	_, err := pool.Watch(context.Background(), func(j client.Job) { fmt.Println(j.ID, j.State) }, "7.host")
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// 7.host running
	// 7.host failed
}

// ExampleClient_Jobs lists the tasks of a job that failed.
func ExampleClient_Jobs() {
	tasks, err := pool.Jobs(context.Background(), client.Query{IDs: []string{"7.host"}, History: true, Tasks: true,
		States: []client.State{client.Failed}})
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range tasks {
		fmt.Println(t.ID, t.Exit.Code, t.Exit.Cause)
	}
	// Output: 7[1].host 3 exited
}

// ExampleClient_Events reads what happened to a job.
func ExampleClient_Events() {
	events, err := pool.Events(context.Background(), "7.host")
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range events {
		fmt.Println(e.Sequence, e.ID, e.What)
	}
	// Output:
	// 1 7.host submitted
	// 2 7[1].host started
}

// ExampleClient_Cancel removes a job, and finds out what an error means.
func ExampleClient_Cancel() {
	ctx := context.Background()
	if err := pool.Cancel(ctx, "enough", "7.host"); err != nil {
		log.Fatal(err)
	}
	_, err := pool.Wait(ctx, "9.host")
	fmt.Println(errors.Is(err, client.ErrNotFound), err)
	// Output: true 9.host: not found
}
