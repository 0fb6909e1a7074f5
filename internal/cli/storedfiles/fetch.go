// Package storedfiles has the command for the files of jobs that are on the checkpoint
// server.
package storedfiles

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// FetchCommand returns roost fetch: get the stored output files of a task.
func FetchCommand() *frame.Command {
	return &frame.Command{
		Name: "fetch", Group: frame.GroupSee, Summary: "get the stored output files of a task", Synopsis: "JOB",
		MinOperands: 1, MaxOperands: 1, OperandName: "a job or task", Run: fetchOutput,
		Description: "Gets the output files of a task whose job has transfer = \"store\", and puts them into the " +
			"current directory. It works on every node of the pool. A job of several tasks needs the task, as in " +
			"123[7] or last[7].",
		Examples: []frame.Example{
			{Line: "roost fetch 123.physics", Description: "its output files, into the current directory"},
			{Line: "roost fetch --to results/7 123[7].physics",
				Description: "the output files of a task, into a directory that is there"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "to", Usage: "put the files into `DIR` instead of the current directory"},
		},
	}
}

func fetchOutput(c *frame.Invocation) error {
	id, err := jobs.ResolveSelector(c, c.Args[0])
	if err != nil {
		return err
	}
	dir := c.AbsolutePath(".")
	if to := c.StringFlag("to"); to != "" {
		dir = c.AbsolutePath(to)
	}
	stored, writer := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		err := jobs.FollowOutput(c, &scheddapi.LogsRequest{Id: id, Files: true}, writer)
		writer.CloseWithError(err)
		failed <- err
	}()
	files, size, err := receiveStored(stored, dir)
	stored.CloseWithError(err)
	if ferr := <-failed; ferr != nil && (err == nil || errors.Is(err, ferr)) {
		return ferr
	}
	if err != nil {
		return frame.DecodeError(err)
	}
	fmt.Fprintf(c.Stdout, "%d files, %d bytes\n", files, size)
	return nil
}

// receiveStored puts a stored set of files below a directory. Nothing at all is a set
// without files.
func receiveStored(stored io.Reader, dir string) (files int, size int64, err error) {
	from := bufio.NewReader(stored)
	if _, err := from.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, 0, nil
		}
		return 0, 0, err
	}
	totals, recv, err := userfiles.ReadStored(from)
	if err != nil {
		return 0, 0, err
	}
	agent, err := userfiles.StartAgent(userfiles.UserCredential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())},
		userfiles.SelfExecutable)
	if err != nil {
		return 0, 0, err
	}
	defer agent.Close()
	return userfiles.ReceiveEntries(context.Background(), recv, agent, dir,
		&userfiles.TransferManifest{Totals: totals})
}
