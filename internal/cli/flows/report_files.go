package flows

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/submit/dag"
	"github.com/roost-batch/roost/schedd/flow/plan"
)

// prepareReports reads what the files need that the flow writes while it runs.
func prepareReports(c *frame.Invocation, p *plan.Plan, o *flowOptions, read *dag.Flow) error {
	if n := len(read.DotFiles); n > plan.MaxDotFiles {
		return frame.KindErrorf(roost.Exhausted, "there are %d DOT commands, and %d is the most", n, plan.MaxDotFiles)
	}
	for i := range p.Reports.Dots {
		d := &p.Reports.Dots[i]
		if d.Source == "" {
			continue
		}
		text, err := readSmall(c, d.Source)
		if err != nil {
			return frame.KindErrorf(roost.NoInput, "DOT %s INCLUDE: %v", d.Name, err)
		}
		d.Commands = text
	}
	if name := p.Reports.JobstateLog; name != "" {
		newest, err := newestSequence(newUserFiles(c), name)
		if err != nil {
			return frame.KindErrorf(roost.NoInput, "JOBSTATE_LOG: %v", err)
		}
		p.Reports.FirstSequence = newest
	}
	hasSaves := false
	for _, s := range p.Settings {
		hasSaves = hasSaves || s.SavePoint != 0
	}
	if o.cell && (p.Reports.JobstateLog != "" || !p.Reports.IsEmpty() || hasSaves) {
		fmt.Fprintln(c.Stderr, "roost: warning: JOBSTATE_LOG, NODE_STATUS_FILE, DOT and SAVE_POINT_FILE write no "+
			"files for a flow of the cell's queue; roost flow status --json shows the nodes")
	}
	return nil
}

// readSmall reads a file that becomes a part of a picture.
func readSmall(c *frame.Invocation, name string) (string, error) {
	f, err := newUserFiles(c).Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, plan.MaxDotCommands+1))
	if err == nil && len(b) > plan.MaxDotCommands {
		err = fmt.Errorf("%s has more than %v", name, roost.Bytes(plan.MaxDotCommands))
	}
	return string(b), err
}

// newestSequence is the highest sequence number in a jobstate log: the flow goes on with
// the next one. It is 0 where there is no such file.
func newestSequence(files dag.FileReader, name string) (newest int, err error) {
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		_, word, ok := cutLast(lines.Text(), " - ")
		if n, err := strconv.ParseUint(word, 10, 31); ok && err == nil {
			newest = max(newest, int(n))
		}
	}
	return newest, lines.Err()
}

// cutLast is strings.Cut at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

// applySavePoint marks the nodes that a save point says are done. One without a directory
// is in save_files, where a flow writes it.
func applySavePoint(c *frame.Invocation, name string, read *dag.Flow) error {
	if !strings.Contains(name, "/") {
		name = path.Join(plan.SaveDirectory, name)
	}
	save, diags := dag.ReadRescue(newUserFiles(c), name, read)
	printDiagnostics(c, diags)
	if diags.HasErrors() {
		return frame.ExitError(errorKind(diags).ExitCode())
	}
	save.Apply(read)
	fmt.Fprintf(c.Stderr, "roost: the flow begins with %s done, by the save point %s\n",
		document.Plural(len(save.Done), "node"), document.PrintableText(name))
	return nil
}
