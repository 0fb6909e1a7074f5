package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// awaitDrained returns when nothing runs on a node. Meanwhile it writes what it waits
// for, whenever that has changed.
func awaitDrained(c *frame.Invocation, node string) error {
	shown := ""
	for {
		claims, err := claimsOf(c, node)
		if err != nil || claims == 0 {
			return err
		}
		rows, _, err := c.QueryPool("", &scheddapi.QueryRequest{Node: node, Tasks: true})
		if err != nil {
			return err
		}
		if text := drainProgress(node, rows); text != shown && len(rows) > 0 {
			fmt.Fprint(c.Stderr, text)
			shown = text
		}
		select {
		case <-time.After(time.Second):
		case <-c.Context.Done():
			return c.Context.Err()
		}
	}
}

// claimsOf counts the claims on a node.
func claimsOf(c *frame.Invocation, node string) (claims int64, err error) {
	texts, err := c.QueryAds(&scheddapi.AdQuery{Type: "Machine",
		Constraint: fmt.Sprintf("%s == %q", roost.AttrName, node)})
	for _, text := range texts {
		if ad, err := classad.Parse(text); err == nil {
			n, _ := ad.Int(roost.AttrNumClaims)
			claims += n
		}
	}
	return claims, err
}

// maxDrainRows is how many of the tasks that are waited for are shown.
const maxDrainRows = 20

// drainProgress writes which tasks a node still has, and why.
func drainProgress(node string, rows []*scheddapi.JobStatus) string {
	slices.SortFunc(rows, func(a, b *scheddapi.JobStatus) int { return cmp.Compare(a.GetId(), b.GetId()) })
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d tasks are left\n", node, len(rows))
	if len(rows) == 1 {
		b.Reset()
		fmt.Fprintf(&b, "%s: 1 task is left\n", node)
	}
	for i, r := range rows {
		if i == maxDrainRows {
			fmt.Fprintf(&b, "  and %d more\n", len(rows)-i)
			break
		}
		fmt.Fprintf(&b, "  %s of %s: %s\n", r.GetId(), document.PrintableText(r.GetOwner()),
			document.PrintableText(cmp.Or(r.GetReason(), "it runs to its end")))
	}
	return b.String()
}
