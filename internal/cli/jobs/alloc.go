package jobs

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// AllocCommand returns roost alloc: list alloc sets, change them, and say whose jobs may
// be inside.
func AllocCommand() *frame.Command {
	return &frame.Command{
		Name: "alloc", Group: frame.GroupChange, Summary: "list and change reserved parts of machines",
		Synopsis: "[list [SET…] | resize SET | allow SET USER… | deny SET USER… | leave JOB… | rm SET…]",
		Run:      runAllocVerb, MaxOperands: -1,
		Description: "Lists your alloc sets, with the machine of each alloc, what runs inside and how much of it " +
			"is asked for. resize makes allocs larger or smaller where they are. allow has the jobs of another user " +
			"inside, and deny no further ones. leave takes a job that does not run out of its alloc set. rm removes " +
			"a set inside which there is no job, or with --with-tasks one with all that is inside. " + selectors,
		Examples: []frame.Example{
			{Line: "roost alloc", Description: "your alloc sets"},
			{Line: "roost alloc resize --cpus 4 --memory 8GiB @web", Description: "larger allocs, where they are"},
			{Line: "roost alloc resize --count 5 @web", Description: "five allocs"},
			{Line: "roost alloc allow @web bob", Description: "bob may submit into the set"},
			{Line: "roost alloc rm --with-tasks 12", Description: "remove a set with the jobs inside"},
		},
		Branches: allocVerbs,
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "of list: the alloc sets of all users"},
			hereFlag(),
			&ucli.StringFlag{Name: "cpus", Usage: "of resize: how many `CORES` each alloc is to have"},
			&ucli.StringFlag{Name: "memory", Usage: "of resize: how much `MEMORY` each alloc is to have, as 8GiB"},
			&ucli.IntFlag{Name: "count", Usage: "of resize: how many allocs the set is to have, `N`"},
			&ucli.BoolFlag{Name: "with-tasks", Usage: "of rm: remove the jobs inside, too"},
			frame.JSONFlag(),
		},
	}
}

// allocVerbs lists what can be done with alloc sets.
func allocVerbs() []frame.Subcommand {
	return []frame.Subcommand{
		{Name: "list", Summary: "list allocs and what is inside", Flags: []string{"all", "here", "json"},
			MaxOperands: -1, Run: listAllocs},
		{Name: "resize", Summary: "make allocs larger or smaller where they are", MinOperands: 1, MaxOperands: 1,
			Flags: []string{"cpus", "memory", "count", "json"}, OperandNames: "an alloc set", Run: resizeAllocs},
		{Name: "allow", Summary: "have the jobs of other users inside", MinOperands: 2, MaxOperands: -1,
			Flags: []string{"json"}, OperandNames: "an alloc set and users",
			Run: func(c *frame.Invocation, args []string) error { return changeAllocUsers(c, args, true) }},
		{Name: "deny", Summary: "have no further jobs of other users inside", MinOperands: 2, MaxOperands: -1,
			Flags: []string{"json"}, OperandNames: "an alloc set and users",
			Run: func(c *frame.Invocation, args []string) error { return changeAllocUsers(c, args, false) }},
		{Name: "leave", Summary: "take jobs that do not run out of their alloc set", MinOperands: 1, MaxOperands: -1,
			Flags: []string{"json"}, OperandNames: "a job", Run: leaveAllocs},
		{Name: "rm", Summary: "remove alloc sets", MinOperands: 1, MaxOperands: -1,
			Flags: []string{"with-tasks", "json"}, OperandNames: "an alloc set", Run: removeAllocs},
	}
}

func runAllocVerb(c *frame.Invocation) error {
	if len(c.Args) == 0 {
		c.Args = []string{"list"}
	}
	return c.RunSubcommand(allocVerbs())
}

func listAllocs(c *frame.Invocation, args []string) error {
	sel := &scheddapi.Selection{Selectors: args, Constraint: "Alloc =?= true"}
	sel.Mine = !c.Flag("all") && len(args) == 0
	found, missing, err := queryJobList(c, &scheddapi.QueryRequest{Selection: sel, Tasks: true})
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, document.IsFinal)
	if c.WantsJSON() {
		return jobsJSON(c, "allocs", found, missing, true)
	}
	c.PrintUnreachable(missing)
	if len(found) == 0 {
		fmt.Fprintln(c.Stderr, "there are no alloc sets; roost-job(5), ALLOCS, says how to write one")
		return nil
	}
	allocTable(c, found).Print(c.Stdout, c.OutScreen)
	return nil
}

func allocTable(c *frame.Invocation, found []*scheddapi.JobStatus) *frame.TextTable {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "ALLOC"}, {Head: "NAME", MinWidth: 8}, {Head: "OWNER", MinWidth: 6}, {Head: "STATE"},
		{Head: "NODE", MinWidth: 6}, {Head: "CPUS", RightAligned: true, DropPriority: 1},
		{Head: "MEMORY", RightAligned: true, DropPriority: 1}, {Head: "GPUS", RightAligned: true, DropPriority: 3},
		{Head: "TASKS", RightAligned: true}, {Head: "JOBS", MinWidth: 6, DropPriority: 2},
		{Head: "NOTE", MinWidth: 10, DropPriority: 4},
	}}
	for _, s := range found {
		state, owner, note := document.StateOf(s), "", ""
		if c.Flag("all") {
			owner = document.PrintableText(s.GetOwner())
		}
		if state == roost.Running.String() {
			state = "open"
		} else {
			note = jobNote(s)
		}
		a, has, used := s.GetAlloc(), s.GetRequest().Vector(), s.GetAlloc().GetInside().Vector()
		gpus := ""
		if has.GPUs > 0 {
			gpus = fmt.Sprintf("%d/%d", used.GPUs, has.GPUs)
		}
		t.AddRow(frame.TableCell{Text: s.GetId()}, frame.TableCell{Text: document.PrintableText(s.GetName())},
			frame.TableCell{Text: owner}, frame.TableCell{Text: state},
			frame.TableCell{Text: document.PrintableText(s.GetNode())},
			frame.TableCell{Text: fmt.Sprintf("%v/%v", used.CPU, has.CPU)},
			frame.TableCell{Text: fmt.Sprintf("%v/%v", used.Memory, has.Memory)}, frame.TableCell{Text: gpus},
			frame.TableCell{Text: fmt.Sprint(a.GetTasks())}, frame.TableCell{Text: allocJobsText(a)},
			frame.TableCell{Text: note, Colour: frame.Dim})
	}
	t.DropEmptyColumns("OWNER", "GPUS", "JOBS", "NOTE")
	return t
}

// allocJobsText lists the numbers of the jobs inside an alloc set.
func allocJobsText(a *scheddapi.AllocStatus) string {
	var ids []string
	for _, id := range a.GetJobs() {
		number, _, _ := strings.Cut(id, ".")
		ids = append(ids, number)
	}
	if n := a.GetMoreJobs(); n > 0 {
		ids = append(ids, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(ids, " ")
}

// showAlloc prints what is inside an alloc set or an alloc, or inside which one a job is.
func showAlloc(s *scheddapi.JobStatus, row func(head, text string)) {
	if a := s.GetAlloc(); a != nil {
		has, used := s.GetRequest().Vector(), a.GetInside().Vector()
		if s.GetState() == "" && s.GetTasks() > 1 {
			row("inside", fmt.Sprintf("%s, with %v cores and %v of memory", document.Plural(int(a.GetTasks()), "task"),
				used.CPU, used.Memory))
		} else {
			row("inside", fmt.Sprintf("%s, with %v of %v cores and %v of %v of memory",
				document.Plural(int(a.GetTasks()), "task"), used.CPU, has.CPU, used.Memory, has.Memory))
		}
		row("jobs inside", allocJobsText(a))
		row("also for", document.PrintableText(strings.Join(a.GetUsers(), " ")))
	}
	if in := s.GetInside(); in != nil {
		text := "alloc set " + in.GetSet() + ", each task inside the alloc of its own index"
		if in.GetAnywhere() {
			text = "alloc set " + in.GetSet() + ", each task inside any alloc that has room"
		}
		if in.GetAlloc() != "" {
			text = "alloc " + in.GetAlloc()
		}
		row("inside", text)
	}
}

// resizeAllocs gives the allocs of a set another size, or the set another number of them.
func resizeAllocs(c *frame.Invocation, args []string) error {
	changes := classad.New()
	var size []string
	if text := c.StringFlag("cpus"); text != "" {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n > 0 && n < 1e6) {
			return frame.UsageErrorf("--cpus: %q is not a number of cores", text)
		}
		changes.SetReal(roost.AttrRequestCpus, n)
		size = append(size, text+" cores")
	}
	if text := c.StringFlag("memory"); text != "" {
		n, err := roost.ParseBytes(text)
		if err != nil || n <= 0 {
			return frame.UsageErrorf("--memory: %q is not a size: write it as 8GiB or 512MiB", text)
		}
		changes.SetInt(roost.AttrRequestMemory, int64(math.Ceil(float64(n)/float64(roost.MiB))))
		size = append(size, fmt.Sprintf("%v of memory", n))
	}
	count := c.CountFlag("count")
	switch {
	case changes.Len() == 0 && !c.IsFlagSet("count"):
		return frame.WithHint(frame.UsageErrorf("what is to change?"),
			"say it with --cpus, --memory or --count; other settings change with roost update FILE")
	case c.IsFlagSet("count") && (count < 1 || count > roost.MaxTasks):
		return frame.UsageErrorf("--count: %d is no number of allocs: write 1 to %d", count, roost.MaxTasks)
	case changes.Len() > 0 && count > 0:
		return frame.UsageErrorf("--count changes the number of allocs, and --cpus and --memory their size: do one " +
			"after the other")
	}
	if count > 0 {
		return OrderUpdate(c, args, &scheddapi.UpdateOrder{CountOnly: true, Count: uint32(count)}, "resized")
	}
	results, err := alterAllocs(c, args, &scheddapi.Alteration{Changes: changes.String(), Basis: -1})
	if err != nil {
		return err
	}
	return reportResults(c, results, func(*scheddapi.ActReply_Result) []string {
		return []string{"each alloc gets " + strings.Join(size, " and ") + " where it is, if its machine has room; " +
			"roost show says what became of it"}
	})
}

func alterAllocs(c *frame.Invocation, selectors []string,
	change *scheddapi.Alteration) ([]*scheddapi.ActReply_Result, error) {
	return changeJobs(c, &scheddapi.ActRequest{Verb: scheddapi.ActRequest_ALTER, Alteration: change,
		Selection: &scheddapi.Selection{Selectors: selectors}})
}

// maxUserChanges bounds how often a change is tried again that others got ahead of.
const maxUserChanges = 5

// changeAllocUsers says that jobs of users may be inside an alloc set, or no further
// ones.
func changeAllocUsers(c *frame.Invocation, args []string, allow bool) error {
	for _, name := range args[1:] {
		if err := roost.CheckAllocUser(name); err != nil {
			return err
		}
	}
	var results []*scheddapi.ActReply_Result
	for range maxUserChanges {
		s, err := FindJob(c, args[0], &scheddapi.QueryRequest{Ads: true})
		if err != nil {
			return err
		}
		if s.GetAlloc() == nil {
			return frame.WithHint(frame.KindErrorf(roost.Invalid, "%s: it is no alloc set", s.GetId()),
				"roost alloc list shows those that there are")
		}
		change, err := allocUserChange(s, args[1:], allow)
		if err != nil {
			return err
		}
		if results, err = alterAllocs(c, []string{s.GetId()}, change); err != nil {
			return err
		}
		if len(results) != 1 || roost.ErrorKind(results[0].GetKind()) != roost.Stale {
			break
		}
	}
	done := "jobs of " + strings.Join(args[1:], ", ") + " may be inside"
	if !allow {
		done = "no further jobs of " + strings.Join(args[1:], ", ") + " come inside; those that are there stay"
	}
	return reportResults(c, results, func(*scheddapi.ActReply_Result) []string { return []string{done} })
}

// allocUserChange returns the change of the list of users of an alloc set, as it is now.
func allocUserChange(s *scheddapi.JobStatus, users []string, allow bool) (*scheddapi.Alteration, error) {
	ad, err := classad.Parse(s.GetAd())
	if err != nil {
		return nil, fmt.Errorf("job %s: its ad: %w", s.GetId(), err)
	}
	list := slices.Clone(s.GetAlloc().GetUsers())
	for _, name := range users {
		at := slices.Index(list, name)
		switch {
		case allow && at < 0:
			list = append(list, name)
		case !allow && at < 0:
			hint := "nobody but its owner is"
			if len(list) > 0 {
				hint = "these are: " + strings.Join(list, ", ")
			}
			return nil, frame.WithHint(frame.KindErrorf(roost.NotFound, "%s: %q is not allowed to be inside", s.GetId(),
				name), hint)
		case !allow:
			list = slices.Delete(list, at, at+1)
		}
	}
	changes := classad.New()
	if changes.SetStrings(roost.AttrAllocUsers, list); len(list) == 0 {
		changes.SetValue(roost.AttrAllocUsers, classad.UndefinedValue())
	}
	basis, _ := ad.Int(roost.AttrAlterations)
	return &scheddapi.Alteration{Changes: changes.String(), Basis: basis}, nil
}

// leaveAllocs takes jobs out of their alloc sets.
func leaveAllocs(c *frame.Invocation, args []string) error {
	changes := classad.New()
	changes.SetValue(roost.AttrInAlloc, classad.UndefinedValue())
	results, err := alterAllocs(c, args, &scheddapi.Alteration{Changes: changes.String(), Basis: -1})
	if err != nil {
		return err
	}
	return reportResults(c, results, func(*scheddapi.ActReply_Result) []string {
		return []string{"its tasks run on machines of their own from now on, and are charged for"}
	})
}

// removeAllocs removes alloc sets, and what is inside only if that is asked for.
func removeAllocs(c *frame.Invocation, args []string) error {
	results, err := changeJobs(c, &scheddapi.ActRequest{Verb: scheddapi.ActRequest_REMOVE,
		Selection: &scheddapi.Selection{Selectors: args}, OnlyEmpty: !c.Flag("with-tasks")})
	if err != nil {
		return err
	}
	return reportChanges(c, results, "removed")
}
