// Package storedfiles has the command for the files of jobs that are on the checkpoint
// server.
package storedfiles

import (
	"context"
	"fmt"
	"io"
	"os"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/userfiles"
)

// FetchCommand returns roost fetch: get the stored output files of a task.
func FetchCommand() *frame.Command {
	return &frame.Command{
		Name: "fetch", Group: frame.GroupSee, Summary: "get the stored output files of a task", Synopsis: "JOB",
		MinOperands: 1, MaxOperands: 1, OperandName: "a job or task", Run: fetchOutput,
		Description: "Gets the output files of a task whose job has transfer = \"store\", and puts them into the " +
			"current directory. It works on every node of the pool. A job of several tasks needs the task, as in " +
			"123[7] or last[7]. After an interruption the same command gets the rest.",
		Examples: []frame.Example{
			{Line: "roost fetch 123.physics", Description: "its output files, into the current directory"},
			{Line: "roost fetch --to results/7 123[7].physics",
				Description: "the output files of a task, into a directory that is there"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "to", Usage: "put the files into `DIR` instead of the current directory"},
			frame.JSONFlag(),
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
	set := &partialSet{dir: dir}
	defer set.close()
	if err := set.receiveAll(c, id); err != nil {
		if set.file != nil && set.digest != "" && set.size > 0 {
			err = frame.WithHint(err, fmt.Sprintf("%v of it are in %s: the same command gets the rest, and if you do "+
				"not want it, remove that file", roost.Bytes(set.size), set.file.Name()))
		}
		return err
	}
	files, size := 0, int64(0)
	if set.file != nil {
		if err := set.read(func(stored io.Reader) (err error) {
			files, size, err = receiveStored(stored, dir)
			return frame.DecodeError(err)
		}); err != nil {
			return err
		}
	}
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"dir": dir, "files": files, "bytes": size,
			"resumed_bytes": set.resumed})
	}
	fmt.Fprintf(c.Stdout, "%d files, %d bytes\n", files, size)
	return nil
}

// receiveStored puts a stored set of files below a directory.
func receiveStored(stored io.Reader, dir string) (files int, size int64, err error) {
	totals, recv, err := userfiles.ReadStored(stored)
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
