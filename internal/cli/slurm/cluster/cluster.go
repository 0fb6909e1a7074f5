// Package cluster chooses the queue that --clusters of the Slurm commands names. A
// cluster of Slurm is a submit node of the pool.
package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// failure is the exit status where there is no such cluster.
const failure = 1

// Choose has the command ask the queue of the node that names have. "all" is the queue of
// this node. It prints why there is no such queue, as the command of that name does.
func Choose(c *frame.Invocation, command, names string) error {
	if names == "" || strings.EqualFold(names, "all") {
		return nil
	}
	own, err := c.ServerName()
	if err != nil {
		return printFailure(c, command, frame.ErrorText(err))
	}
	list := strings.Split(names, ",")
	if len(list) > 1 {
		return printFailure(c, command, "several clusters are not supported: name one of them, or all for this one")
	}
	if list[0] == own {
		return nil
	}
	nodes, err := submitNodes(c)
	if err != nil {
		return printFailure(c, command, frame.ErrorText(err))
	}
	if !slices.Contains(nodes, list[0]) {
		return printFailure(c, command, fmt.Sprintf("'%s' can't be reached now, or it is an invalid entry for "+
			"--cluster.  Use 'sacctmgr list clusters' to see available clusters.", list[0]))
	}
	c.ScheddNode = list[0]
	return nil
}

// printFailure prints why no cluster could be chosen.
func printFailure(c *frame.Invocation, command, why string) error {
	fmt.Fprintf(c.Stderr, "%s: error: %s\n", command, document.PrintableText(why))
	if !slices.Contains([]string{"sbatch", "salloc", "srun"}, command) {
		fmt.Fprintf(c.Stderr, "%s: fatal: Could not get cluster information\n", command)
	}
	return frame.ExitError(failure)
}

// submitNodes are the names of the pool's nodes with a queue.
func submitNodes(c *frame.Invocation) (names []string, err error) {
	texts, err := c.QueryAds(&scheddapi.AdQuery{Type: "Scheduler", Projection: []string{roost.AttrName}})
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			return nil, err
		}
		name, _ := ad.Str(roost.AttrName)
		names = append(names, name)
	}
	return names, nil
}
