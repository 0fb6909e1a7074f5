package reports

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/slurm/getopt"
	"github.com/roost-batch/roost/internal/slurm/hostlist"
	"github.com/roost-batch/roost/internal/slurm/records"
)

func sinfoCommand() *frame.Command {
	return &frame.Command{
		Name: "sinfo", Group: frame.GroupSlurm, Summary: "list machines and partitions as Slurm does", RawArgs: true,
		MaxOperands: -1, Run: sinfo,
		Synopsis: "[-o FORMAT | -O FIELDS] [-p PARTITIONS] [-n NODES] [-t STATES] [-hlNrs]",
		Description: "Lists the machines of the pool by their state, as sinfo of Slurm does. A partition is a queue, " +
			"and all machines are in each.",
		Examples: []frame.Example{
			{Line: "sinfo", Description: "a line for each state of machines"},
			{Line: "sinfo -N -l", Description: "a line for each machine"},
			{Line: "sinfo -h -o %C", Description: "CPUs: allocated, idle, other and all"},
		},
	}
}

func sinfoOptions() []getopt.Option {
	with := func(name string, letter byte) getopt.Option {
		return getopt.Option{Name: name, Letter: letter, Argument: getopt.Required}
	}
	return []getopt.Option{
		{Name: "all", Letter: 'a'}, {Name: "dead", Letter: 'd'}, {Name: "exact", Letter: 'e'},
		{Name: "noheader", Letter: 'h'}, {Name: "hide"}, {Name: "long", Letter: 'l'}, with("clusters", 'M'),
		with("cluster", 0), with("nodes", 'n'), {Name: "Node", Letter: 'N'}, with("format", 'o'),
		with("Format", 'O'),
		with("partition", 'p'), {Name: "responding", Letter: 'r'}, {Name: "list-reasons", Letter: 'R'},
		{Name: "summarize", Letter: 's'}, with("sort", 'S'), with("states", 't'), {Name: "reservation", Letter: 'T'},
		{Name: "verbose", Letter: 'v'}, {Name: "federation"}, {Name: "local"}, {Name: "noconvert"},
	}
}

// machineGroup is machines that share a line.
type machineGroup []document.Node

// sinfoField is what a letter of sinfo -o stands for.
type sinfoField struct {
	letter byte
	title  string
	// it differs between machines, and those that differ in it are in lines of their own
	separates bool
	value     func(machineGroup) string
}

// first makes a field of the first machine of a line.
func first(value func(*document.Node) string) func(machineGroup) string {
	return func(g machineGroup) string {
		if len(g) == 0 {
			return "n/a"
		}
		return value(&g[0])
	}
}

// same is a field that is the same for all.
func same(text string) func(machineGroup) string { return func(machineGroup) string { return text } }

// shortNodeState is the state in at most five letters.
func shortNodeState(n *document.Node) string {
	return map[string]string{"allocated": "alloc", "mixed": "mix", "drained": "drain",
		"draining": "drng"}[nodeState(n)]
}

// sinfoFields are the fields of the lines of a partition.
func sinfoFields(p partition) []sinfoField {
	long := func(n *document.Node) string { return nodeState(n) }
	short := func(n *document.Node) string { return cmp.Or(shortNodeState(n), nodeState(n)) }
	number := func(value func(*document.Node) float64) func(machineGroup) string {
		return first(func(n *document.Node) string { return strconv.FormatInt(int64(value(n)), 10) })
	}
	return []sinfoField{
		{'P', "PARTITION", false, same(p.shown())}, {'R', "PARTITION", false, same(p.name)},
		{'a', "AVAIL", false, same(p.availability())}, {'l', "TIMELIMIT", false, same(p.shownLimit())},
		{'L', "DEFAULTTIME", false, same("n/a")}, {'s', "JOB_SIZE", false, same("1-infinite")},
		{'r', "ROOT", false, same("no")}, {'h', "OVERSUBS", false, same("NO")}, {'g', "GROUPS", false, same("all")},
		{'p', "PRIO_TIER", false, same("1")}, {'i', "RESERVATION", false, same("")},
		{'D', "NODES", false, func(g machineGroup) string { return strconv.Itoa(len(g)) }},
		{'N', "NODELIST", false, machineGroup.names}, {'n', "HOSTNAMES", true, first(func(n *document.Node) string {
			return n.Name
		})},
		{'o', "NODE_ADDR", true, first(func(n *document.Node) string { return n.Name })},
		{'T', "STATE", true, first(long)}, {'t', "STATE", true, first(short)},
		{'c', "CPUS", true, number(func(n *document.Node) float64 { return n.Cpus.Total })},
		{'m', "MEMORY", true, number(func(n *document.Node) float64 { return n.Memory.Total / (1 << 20) })},
		{'e', "FREE_MEM", true, number(func(n *document.Node) float64 { return n.Memory.Free / (1 << 20) })},
		{'d', "TMP_DISK", true, number(func(n *document.Node) float64 { return n.Disk.Total / (1 << 20) })},
		{'G', "GRES", true, first(func(n *document.Node) string {
			if n.GPUs.Total < 1 {
				return "(null)"
			}
			return fmt.Sprintf("gpu:%d", int64(n.GPUs.Total))
		})},
		{'f', "AVAIL_FEATURES", false, same("(null)")}, {'b', "ACTIVE_FEATURES", false, same("(null)")},
		{'C', "CPUS(A/I/O/T)", false, machineGroup.cpus}, {'F', "NODES(A/I/O/T)", false, machineGroup.counts},
		{'A', "NODES(A/I)", false, func(g machineGroup) string {
			parts := strings.Split(g.counts(), "/")
			return parts[0] + "/" + parts[1]
		}},
		{'O', "CPU_LOAD", true, first(func(n *document.Node) string { return fmt.Sprintf("%.2f", n.Load) })},
		{'w', "WEIGHT", false, same("1")},
		{'z', "S:C:T", true, first(func(n *document.Node) string {
			return fmt.Sprintf("1:%d:1", int64(n.Cpus.Total))
		})},
		{'X', "SOCKETS", false, same("1")}, {'Z', "THREADS", false, same("1")},
		{'Y', "CORES", true, number(func(n *document.Node) float64 { return n.Cpus.Total })},
		{'E', "REASON", true, first(func(n *document.Node) string {
			return document.PrintableText(cmp.Or(n.Drain, "none"))
		})},
		{'H', "TIMESTAMP", false, same("Unknown")}, {'u', "USER", false, same("Unknown")},
		{'U', "USER", false, same("Unknown")}, {'v', "VERSION", false, same(slurmVersion)},
		{'M', "PREEMPT_MODE", false, same("OFF")}, {'B', "MAX_CPUS_PER_NODE", false, same("UNLIMITED")},
	}
}

func (g machineGroup) names() string {
	names := make([]string, len(g))
	for i := range g {
		names[i] = g[i].Name
	}
	return hostlist.Compress(names)
}

// cpus counts CPUs that are allocated, idle, neither, and all.
func (g machineGroup) cpus() string {
	var used, idle, other, total int64
	for i := range g {
		n := &g[i]
		all, free := int64(n.Cpus.Total), int64(n.Cpus.Free)
		total += all
		used += all - free
		if n.Drain != "" {
			other += free
		} else {
			idle += free
		}
	}
	return fmt.Sprintf("%d/%d/%d/%d", used, idle, other, total)
}

// counts counts machines that are allocated, idle, neither, and all.
func (g machineGroup) counts() string {
	var used, idle, other int
	for i := range g {
		switch nodeState(&g[i]) {
		case "allocated", "mixed":
			used++
		case "idle":
			idle++
		default:
			other++
		}
	}
	return fmt.Sprintf("%d/%d/%d/%d", used, idle, other, len(g))
}

// sinfoNames are the fields of sinfo -O, in small letters, with their letters.
func sinfoNames() map[string]byte {
	return map[string]byte{"available": 'a', "cores": 'Y', "cpus": 'c', "cpusload": 'O', "cpusstate": 'C',
		"defaulttime": 'L', "disk": 'd', "features": 'f', "features_act": 'b', "freemem": 'e', "gres": 'G',
		"groups": 'g', "maxcpuspernode": 'B', "memory": 'm', "nodeai": 'A', "nodeaiot": 'F', "nodeaddr": 'o',
		"nodehost": 'n', "nodelist": 'N', "nodes": 'D', "oversubscribe": 'h', "partition": 'P', "partitionname": 'R',
		"preemptmode": 'M', "prioritytier": 'p', "reason": 'E', "reservation": 'i', "root": 'r', "size": 's',
		"socketcorethread": 'z', "sockets": 'X', "state": 'T', "statecompact": 't', "statelong": 'T', "threads": 'Z',
		"time": 'l', "timestamp": 'H', "user": 'u', "userlong": 'U', "version": 'v', "weight": 'w'}
}

// sinfoParts is what the options ask for of each line: letters of -o, or names of -O.
func sinfoParts(c *frame.Invocation, given []getopt.Given, chosen []partition,
	nodes []document.Node) (prefix string, parts []records.FormatPart, err error) {
	names, isLong := getopt.Last(given, "Format")
	if !isLong {
		prefix, parts = records.SplitFormat(sinfoFormat(c, given, chosen, nodes))
		return prefix, parts, nil
	}
	for item := range strings.SplitSeq(names, ",") {
		name, size, sized := strings.Cut(item, ":")
		p := records.FormatPart{Letter: sinfoNames()[strings.ToLower(strings.TrimSpace(name))], Width: 20}
		if p.Letter == 0 {
			return "", nil, fail(c, "Invalid job format specification: "+item)
		}
		if sized {
			_, sizes := records.SplitFormat("%" + size + "P")
			p.Width, p.Right = sizes[0].Width, sizes[0].Right
			p.Suffix = strings.TrimLeft(size, ".0123456789")
		}
		parts = append(parts, p)
	}
	return "", parts, nil
}

// sinfoFormat is the format that the options ask for.
func sinfoFormat(c *frame.Invocation, given []getopt.Given, chosen []partition, nodes []document.Node) string {
	longestNode := len("PARTITION")
	for i := range nodes {
		longestNode = max(longestNode, len(nodes[i].Name))
	}
	nodeWidth := strconv.Itoa(longestNode)
	longest := len("PARTITION")
	for i := range chosen {
		longest = max(longest, len(chosen[i].shown()))
	}
	width := strconv.Itoa(longest)
	switch format, _ := getopt.Last(given, "format"); {
	case format != "":
		return format
	case c.Getenv("SINFO_FORMAT") != "":
		return c.Getenv("SINFO_FORMAT")
	case has(given, "list-reasons"):
		return "%20E %9u %19H %N"
	case has(given, "summarize"):
		return "%" + width + "P %.5a %.10l %.16F %N"
	case has(given, "Node") && has(given, "long"):
		return "%" + nodeWidth + "N %.6D %.9P %.11T %.4c %.8z %.6m %.8d %.6w %.8f %20E"
	case has(given, "Node"):
		return "%" + nodeWidth + "N %.6D %.9P %6t"
	case has(given, "long"):
		return "%" + width + "P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %.11i %N"
	}
	return "%" + width + "P %.5a %.10l %.6D %.6t %N"
}

func sinfo(c *frame.Invocation) error {
	given, operands, answered, err := parseOptions(c, sinfoOptions())
	if err != nil || answered {
		return err
	}
	if len(operands) > 0 {
		return fail(c, "Unrecognized option: "+operands[0])
	}
	nodes, err := chosenMachines(c, given)
	if err != nil {
		return err
	}
	chosen := chosenPartitions(c, given)
	prefix, parts, err := sinfoParts(c, given, chosen, nodes)
	if err != nil {
		return err
	}
	all := sinfoFields(partition{})
	fieldOf := func(letter byte) *sinfoField {
		if i := slices.IndexFunc(all, func(f sinfoField) bool { return f.letter == letter }); i >= 0 {
			return &all[i]
		}
		return nil
	}
	for _, p := range parts {
		if fieldOf(p.Letter) == nil {
			return fail(c, "Invalid node format specification: "+string(p.Letter))
		}
	}
	out := bufio.NewWriter(c.Stdout)
	defer out.Flush()
	write := func(value func(*sinfoField) string) {
		out.WriteString(prefix)
		for _, p := range parts {
			out.WriteString(p.Fit(value(fieldOf(p.Letter))) + p.Suffix)
		}
		out.WriteByte('\n')
	}
	printCluster(c, out, given)
	if has(given, "long") && !has(given, "noheader") {
		now := clock(c)
		fmt.Fprintln(out, now.Now.In(now.Zone).Format("Mon Jan 02 15:04:05 2006"))
	}
	if !has(given, "noheader") {
		write(func(f *sinfoField) string { return f.title })
	}
	for _, p := range chosen {
		all = sinfoFields(p)
		for _, g := range groupMachines(nodes, has(given, "Node"), func(n document.Node) (key string) {
			for _, part := range parts {
				if f := fieldOf(part.Letter); f.separates {
					key += f.value(machineGroup{n}) + "\x00"
				}
			}
			return key
		}) {
			write(func(f *sinfoField) string { return f.value(g) })
		}
		if !slices.ContainsFunc(parts, func(part records.FormatPart) bool { return isPartitionLetter(part.Letter) }) {
			break // the lines of the others would be the same
		}
	}
	return nil
}

// isPartitionLetter reports whether a field differs between partitions.
func isPartitionLetter(letter byte) bool { return strings.IndexByte("PRal", letter) >= 0 }

// chosenPartitions are those that the options choose.
func chosenPartitions(c *frame.Invocation, given []getopt.Given) []partition {
	all := partitions(c)
	text, _ := getopt.Last(given, "partition")
	if text == "" {
		return all
	}
	return slices.DeleteFunc(all, func(p partition) bool { return !slices.Contains(list(text), p.name) })
}

// groupMachines puts machines of one key in a line, or each in one of its own.
func groupMachines(nodes []document.Node, each bool, keyOf func(document.Node) string) (groups []machineGroup) {
	byKey := map[string]int{}
	for _, n := range nodes {
		key := keyOf(n)
		i, ok := byKey[key]
		if !ok || each {
			i, byKey[key] = len(groups), len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], n)
	}
	return groups
}

// nodeStates are the states that sinfo -t knows, with their short forms.
var nodeStates = strings.Fields("all unknown unk down idle allocated alloc mixed mix future futr drain drained " +
	"draining " +
	"drng no_respond resp reserved resv planned plnd blocked block cloud completing comp powering_down pow_dn " +
	"powered_down power_down powering_up pow_up fail failing failg maint reboot perfctrs npc error")

// chosenMachines asks for the machines that the options choose.
func chosenMachines(c *frame.Invocation, given []getopt.Given) ([]document.Node, error) {
	text, _ := getopt.Last(given, "nodes")
	names, err := hostlist.Expand(text)
	if err != nil {
		return nil, fail(c, "Invalid node name "+text)
	}
	states, _ := getopt.Last(given, "states")
	for _, s := range list(states) {
		if !slices.Contains(nodeStates, strings.TrimRight(strings.ToLower(s), "*~#!%$@^-+")) {
			fmt.Fprintf(c.Stderr, "sinfo: error: Bad state string: %q\nsinfo: error: valid states: %s\n", s,
				strings.Join(nodeStates, ","))
			return nil, frame.ExitError(failure)
		}
	}
	nodes, err := machines(c)
	if err != nil {
		return nil, failWith(c, err)
	}
	return slices.DeleteFunc(nodes, func(n document.Node) bool {
		state := nodeState(&n)
		inState := states == "" || slices.ContainsFunc(list(states), func(s string) bool {
			s = strings.ToLower(s)
			return s == "all" || s == state || s == shortNodeState(&n) || s == "drain" && n.Drain != ""
		})
		return !wantsNode(names, n.Name) || !inState ||
			has(given, "list-reasons") && n.Drain == ""
	}), nil
}
