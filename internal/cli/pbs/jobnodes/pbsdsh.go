package jobnodes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire"
)

func DistributeCommand() *frame.Command {
	return &frame.Command{
		Name: "pbsdsh", Group: frame.GroupPBS,
		Summary:  "run a command on all machines of the job that this runs in",
		Synopsis: "[-c COPIES | -n LINE] [-o] [-s] [-v] [--] COMMAND [ARGUMENT…]", RawArgs: true, MaxOperands: -1,
		Run: pbsdsh,
		Description: "To be run in a job. Runs a command once for each line of the job's file of nodes, on the " +
			"machine that the line names: in the sandbox of the job's chunk there, within what that has, as " +
			"its user. What it writes comes back, and pbsdsh ends when all have ended.",
		Examples: []frame.Example{
			{Line: "pbsdsh -- hostname", Description: "say where the job is"},
			{Line: "pbsdsh -n 1 -- ./worker --rank 1", Description: "run something by the second line of the file"},
			{Line: "pbsdsh -c 2 -s -- df -h /tmp", Description: "by the first two, one after the other"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("c", "COPIES",
				"run so many copies, by the first lines, and by those again if there are fewer"),
			pbsframe.ShortFlag("n", "LINE", "run one copy, by that line; the first is 0"),
			pbsframe.ShortFlag("o", "",
				"do not wait for the copies to end, nor for what they write; they end with the job"),
			pbsframe.ShortFlag("s", "", "one after the other"), pbsframe.ShortFlag("v", "",
				"say on standard error which line and machine each copy is for, and how it has ended"),
		},
	}
}

func pbsdsh(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	own, command := pbsframe.CutLeadingOptions(c.Args, "cn")
	o, err := pbsframe.ParseOptions(own, "c:n:osv")
	switch {
	case err != nil:
		return pbsframe.PrintUsage(c, err.Error())
	case len(command) == 0 || o.IsSet('c') && o.IsSet('n'):
		return pbsframe.PrintUsage(c, "")
	}
	nodes, err := jobNodes()
	if err != nil {
		return spawnFailed(c, err)
	}
	lines, err := nodeFileLines(c, &o, len(nodes))
	if err != nil {
		return err
	}
	if o.IsSet('o') {
		command = append([]string{"/usr/bin/setsid", "--fork", "/bin/sh", "-c", `exec "$@" <&- >/dev/null 2>&1`, "sh"},
			command...)
	}
	if o.IsSet('v') {
		for place, line := range lines {
			fmt.Fprintf(c.Stderr, "pbsdsh: copy %d: line %d, %s\n", place, line, nodes[line])
		}
	}
	codes, err := runOnNodes(c, &wire.ReachCall{Command: command, Lines: lines, Sequential: o.IsSet('s')}, nodes)
	if err != nil {
		return spawnFailed(c, err)
	}
	if o.IsSet('v') {
		for place, code := range codes {
			fmt.Fprintf(c.Stderr, "pbsdsh: copy %d: exit status %d\n", place, code)
		}
	}
	return worstExit(codes)
}

// nodeFileLines are the lines of the file of nodes that a command is to be run by.
func nodeFileLines(c *frame.Invocation, o *pbsframe.Options, have int) (lines []uint32, err error) {
	count, first := have, 0
	for _, letter := range []byte{'c', 'n'} {
		if !o.IsSet(letter) {
			continue
		}
		n, err := strconv.ParseUint(o.Last(letter), 10, 16)
		if err != nil || letter == 'n' && int(n) >= have || letter == 'c' && n == 0 {
			return nil, pbsframe.PrintUsage(c, fmt.Sprintf("illegal -%c value: the job has lines 0 to %d", letter,
				have-1))
		}
		if count = int(n); letter == 'n' {
			count, first = 1, int(n)
		}
	}
	for i := range count {
		lines = append(lines, uint32((first+i)%have))
	}
	return lines, nil
}

func ShellCommand() *frame.Command {
	return &frame.Command{
		Name: "pbs_tmrsh", Group: frame.GroupPBS,
		Summary:  "run a command on a machine of the job that this runs in, as rsh does",
		Synopsis: "[-nxq] [-l USER] [-o OPTION] HOST [-nxq] [-l USER] COMMAND [ARGUMENT…]", RawArgs: true,
		MaxOperands: -1, Run: pbsTmrsh,
		Description: "To be run in a job, by programs that start processes on other machines by rsh or ssh and can " +
			"be told to use something else. The words of the command are put together and run by a shell, in " +
			"the sandbox of the job's chunk on that machine. It reads no standard input.",
		Examples: []frame.Example{
			{Line: "pbs_tmrsh n2 hostname", Description: "run something on n2"},
			{Line: "mpirun --mca plm_rsh_agent pbs_tmrsh --hostfile $PBS_NODEFILE ./program",
				Description: "have Open MPI start its processes by it, as it does in a job anyway"},
		},
		Flags: []ucli.Flag{
			pbsframe.ShortFlag("n", "", "taken, and does nothing"),
			pbsframe.ShortFlag("x", "", "of ssh: taken, and does nothing"),
			pbsframe.ShortFlag("q", "", "likewise"),
			pbsframe.ShortFlag("l", "USER", "taken, and does nothing: the job's user runs it"),
			pbsframe.ShortFlag("o", "OPTION", "of ssh: taken, and does nothing"),
		},
	}
}

func pbsTmrsh(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	own, rest := pbsframe.CutLeadingOptions(c.Args, "lo")
	if _, err := pbsframe.ParseOptions(own, "nxql:o:"); err != nil || len(rest) < 2 {
		return pbsframe.PrintUsage(c, "")
	}
	host := rest[0]
	own, command := pbsframe.CutLeadingOptions(rest[1:], "lo")
	if _, err := pbsframe.ParseOptions(own, "nxql:o:"); err != nil || len(command) == 0 {
		return pbsframe.PrintUsage(c, "")
	}
	nodes, err := jobNodes()
	if err != nil {
		return spawnFailed(c, err)
	}
	line := slices.IndexFunc(nodes, func(n string) bool { return strings.EqualFold(n, host) })
	if line < 0 {
		short := func(n string) string { n, _, _ = strings.Cut(n, "."); return n }
		line = slices.IndexFunc(nodes, func(n string) bool { return strings.EqualFold(short(n), short(host)) })
	}
	if line < 0 {
		fmt.Fprintf(c.Stderr, "pbs_tmrsh: %s is no machine of this job\n", document.PrintableText(host))
		return frame.ExitError(1)
	}
	codes, err := runOnNodes(c, &wire.ReachCall{Command: []string{"/bin/sh", "-c", strings.Join(command, " ")},
		Lines: []uint32{uint32(line)}}, nodes)
	if err != nil {
		return spawnFailed(c, err)
	}
	return worstExit(codes)
}
