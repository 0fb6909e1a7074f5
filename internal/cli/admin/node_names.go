package admin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/suggest"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// MachineNames are the names of all machines that advertise themselves.
func MachineNames(c *frame.Invocation) (names []string, err error) {
	texts, err := c.QueryAds(&scheddapi.AdQuery{Type: "Machine", Projection: []string{roost.AttrName}})
	if err != nil {
		return nil, err
	}
	for _, text := range texts {
		if ad, err := classad.Parse(text); err == nil {
			if name, ok := ad.Str(roost.AttrName); ok {
				names = append(names, name)
			}
		}
	}
	slices.SortFunc(names, document.CompareNames)
	return names, nil
}

// fullNodeName is the whole name of a machine that the user has named by what stands
// before its first point. A name that no machine has stays as it is.
func fullNodeName(c *frame.Invocation, name string, more ...string) (string, error) {
	all, err := MachineNames(c)
	if err != nil {
		return name, nil // who is asked to do something with it knows more
	}
	switch found := qsub.MatchingMachines(name, append(all, more...)); len(found) {
	case 0:
		return name, nil
	case 1:
		return found[0], nil
	default:
		return "", frame.WithHint(frame.KindErrorf(roost.Invalid, "%q may be %s", name, strings.Join(found, " or ")),
			"write the whole name")
	}
}

// suggestNode adds to an error about a machine that there is not which may have been
// meant.
func suggestNode(c *frame.Invocation, name string, err error) error {
	if !errors.Is(frame.DecodeError(err), roost.NotFound) && !errors.Is(err, roost.NotFound) {
		return err
	}
	all, aerr := MachineNames(c)
	if aerr != nil {
		return err
	}
	if slices.Contains(all, name) { // it is there, and something of it is not
		return frame.WithHint(err, "roost drain lists the nodes that are drained")
	}
	near := suggest.Nearest(name, all)
	for _, whole := range all {
		short, _, _ := strings.Cut(whole, ".")
		if near == "" && suggest.Nearest(name, []string{short}) != "" {
			near = whole
		}
	}
	if near == "" || strings.Contains(err.Error(), "did you mean") {
		return err
	}
	return frame.WithHint(err, fmt.Sprintf("did you mean %q?", near))
}
