package flows

import (
	"bufio"
	"context"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/progressbar"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// runSubflow waits for a flow that is a node of another one, and ends as it does. With
// isOld it was submitted before: what had failed of it runs again. SIGTERM, by which the
// node is removed, removes it.
func runSubflow(c *frame.Invocation, id string, isOld bool) error {
	fmt.Fprintln(c.Stdout, id)
	if isOld {
		s, err := subflow(c, id)
		if err != nil {
			return err
		}
		if document.IsFinal(s) && s.GetExit().GetCode() == 0 && !s.GetRemoved() {
			return nil
		}
		if document.IsFinal(s) {
			if err := jobs.Retry(c, id); err != nil {
				return err
			}
		}
	}
	stopped, stop := signal.NotifyContext(context.WithoutCancel(c.Context), syscall.SIGTERM)
	defer stop()
	ended := make(chan struct{})
	removed := make(chan struct{})
	go func() {
		defer close(removed)
		select {
		case <-stopped.Done():
			if err := jobs.Remove(c, id); err != nil {
				fmt.Fprintf(c.Stderr, "roost: %v\n", err)
			}
		case <-ended:
		}
	}()
	c.Context = context.WithoutCancel(c.Context)
	err := jobs.AwaitJobs(c, progressbar.New, []string{id}, 0, true)
	close(ended)
	<-removed
	if err == nil {
		return nil
	}
	s, serr := subflow(c, id)
	if serr != nil {
		return err
	}
	fmt.Fprintf(c.Stderr, "roost: %s: %s\n", id, document.PrintableText(s.GetReason()))
	if code := s.GetExit().GetCode(); code != 0 {
		return frame.ExitError(int(code))
	}
	return err
}

// subflow is how a flow stands.
func subflow(c *frame.Invocation, id string) (*scheddapi.JobStatus, error) {
	list, err := jobs.Flows(c, []string{id})
	if err == nil && len(list) != 1 {
		err = frame.KindErrorf(roost.NotFound, "flow %s is not known any more", id)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// printRescue prints a rescue file: the nodes of a flow that are done. So is a failed
// node for which no other has to wait.
func printRescue(c *frame.Invocation, args []string) error {
	s, err := subflow(c, args[0])
	if err != nil {
		return err
	}
	nodes, err := flowNodes(c, s.GetId())
	if err != nil {
		return err
	}
	w := bufio.NewWriter(c.Stdout)
	fmt.Fprintf(w, "# Rescue DAG file of flow %s, %s\n# Created %s\n", s.GetId(), document.PrintableText(s.GetName()),
		c.Now().Format(time.RFC3339))
	for _, n := range nodes {
		if n.GetState() == "done" || n.GetState() == "failed" && hasOnlyWeakChildren(n) {
			fmt.Fprintf(w, "DONE %s\n", n.GetName())
		}
	}
	return w.Flush()
}

func hasOnlyWeakChildren(n *scheddapi.FlowNode) bool {
	for _, name := range n.GetChildren() {
		if !strings.HasPrefix(name, "~") {
			return false
		}
	}
	return len(n.GetChildren()) > 0
}
