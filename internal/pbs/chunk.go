package pbs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// chunk is a set of resources that lies on one machine, and how many such there are.
type chunk struct {
	count     int
	cpus      int
	gpus      int
	noGpus    bool // ngpus=0 was said
	processes int  // mpiprocs: lines of the node file; below 0: unsaid
	threads   int  // ompthreads: of each process; 0: as many as CPUs
	memory    roost.Bytes
	virtual   roost.Bytes
	gpuMemory roost.Bytes    // of each GPU
	disk      roost.Bytes    // of the machine, for the job's own files there
	hosts     []string       // named machines
	counted   map[string]int // custom resources, by lower-case name
	require   []string       // more of what the machine has to be, as expressions
	words     []string       // all but the CPUs, as -l select would say it

	custom     []string   // words of machines that it wants, and that PBS does not know
	properties []property // what it wants that may be a machine
}

func newChunk() chunk { return chunk{count: 1, cpus: 1, processes: -1} }

// text writes the chunk as -l select would, as OpenPBS does with what older options asked for.
func (c *chunk) text() string {
	return strings.Join(append([]string{strconv.Itoa(c.count), "ncpus=" + strconv.Itoa(c.cpus)}, c.words...), ":")
}

// parseSelect reads "[N:]name=value[:name=value…][+…]".
func parseSelect(v string) ([]chunk, error) {
	bad := illegalResource("select", "")
	var all []chunk
	for _, text := range strings.Split(v, "+") {
		c := newChunk()
		seen := map[string]bool{}
		for i, part := range strings.Split(text, ":") {
			name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
			if n, number := parseCount(name); i == 0 && !ok && number && n > 0 {
				c.count = n
				continue
			}
			if !ok || !plainName(name) {
				return nil, bad
			}
			if seen[name] {
				return nil, refuse("Duplicated resource within a section of a select specification, resource is: "+name, exitTwice)
			}
			seen[name] = true
			if err := c.set(name, value); err != nil {
				return nil, err
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// parseNodes reads Torque's "N[:ppn=M][:property…][+…][#excl|#shared]"; for a number there can be the name of a machine.
func parseNodes(v string) ([]chunk, error) {
	bad := illegalResource("nodes", "")
	spec, suffix, suffixed := strings.Cut(v, "#")
	if suffixed && suffix != "shared" && suffix != "excl" {
		return nil, bad
	}
	var all []chunk
	for _, text := range strings.Split(spec, "+") {
		c := newChunk()
		for i, part := range strings.Split(text, ":") {
			name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
			n, number := parseCount(name)
			switch {
			case number && i == 0 && !ok && n > 0:
				c.count = n
			case !ok && plainName(name) && !number:
				c.property(name)
			case ok && name == "ppn":
				if n, ok := parseCount(value); ok && n > 0 {
					c.cpus, c.processes, c.words = n, n, append(c.words, "mpiprocs="+value)
					continue
				}
				return nil, bad
			case ok && name == "gpus":
				if err := c.set("ngpus", value); err != nil {
					return nil, bad
				}
			case ok && plainName(name):
				if err := c.set(name, value); err != nil {
					return nil, err
				}
			default:
				return nil, bad
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// set sets one resource of the chunk. What PBS does not know itself is custom (custom.go).
func (c *chunk) set(name, v string) error {
	if check := perChunk[name]; check != nil {
		if !check(v) {
			return illegalResource(name, why[name])
		}
		c.known(name, v)
		return nil
	}
	truth, isTruth := parseTruth(v)
	n, counted := countOf(name, v)
	switch {
	case jobWide[name] != nil:
		return refuse("Resource invalid in \"select\" specification: "+name, exitInSelect)
	case counted:
		if c.counted == nil {
			c.counted = map[string]int{}
		}
		c.counted[strings.ToLower(name)] = n
	case !attributeOfMachine(name, v):
		return refuse("Unknown resource: "+name, exitUnknown)
	case isTruth && truth:
		c.require, c.custom = append(c.require, "TARGET."+name+" =?= true"), append(c.custom, name)
	case isTruth:
		c.require, c.custom = append(c.require, "TARGET."+name+" =!= true"), append(c.custom, name)
	default:
		c.require, c.custom = append(c.require, "TARGET."+name+" == "+classad.StringValue(v).String()), append(c.custom, name)
	}
	return nil
}

// known sets a resource whose value was checked.
func (c *chunk) known(name, v string) {
	n, _ := parseCount(v)
	size, _ := parseSize(v)
	if name != "ncpus" {
		c.words = append(c.words, name+"="+v)
	}
	switch name {
	case "ncpus":
		c.cpus = n
	case "ngpus":
		c.gpus, c.noGpus = n, n == 0
	case "mpiprocs":
		c.processes = n
	case "ompthreads":
		c.threads = n
	case "mem":
		c.memory = size
	case "vmem":
		c.virtual = size
	case "gpu_mem":
		c.gpuMemory = size
	case scratchLocal:
		c.disk = size
	case "host", "vnode":
		c.hosts = append(c.hosts, v)
	case "arch":
		if !strings.EqualFold(v, "linux") { // as all machines are
			c.require = append(c.require, "TARGET.Arch == "+classad.StringValue(v).String())
		}
	}
}

// property asks for what stands alone in -l nodes: a machine of that name, or one of which an administrator has said so.
func (c *chunk) property(name string) {
	c.properties, c.words = append(c.properties, property{name, len(c.words)}), append(c.words, name+"=true")
}

func isMachine(name string) string {
	text := classad.StringValue(name).String()
	return "TARGET.Machine == " + text + " || TARGET.Name == " + text
}

// place is how chunks may lie.
type place struct {
	arrangement string // "free", "pack", "scatter", "vscatter"
	sharing     string // "shared", "excl", "exclhost", or "" where it is not said
	group       string // the resource of which all their machines have the same value; "" for none
}

// alone reports whether the job has its machines alone: a machine is a host and its one vnode.
func (p *place) alone() bool { return p.sharing == "excl" || p.sharing == "exclhost" }

// attribute is the attribute of machines that has the values of the group.
func (p *place) attribute() string {
	switch p.group {
	case "host", "vnode": // several on one host have names of their own
		return roost.AttrName
	case "arch":
		return roost.AttrArch
	}
	return p.group
}

// parsePlace reads "[free|pack|scatter|vscatter][:excl|shared|exclhost][:group=resource]".
func parsePlace(v string) (p place, err error) {
	p.arrangement = "free"
	arranged := false
	for _, part := range strings.Split(v, ":") {
		switch name, value, ok := strings.Cut(part, "="); {
		case slices.Contains([]string{"free", "pack", "scatter", "vscatter"}, part) && !arranged:
			arranged, p.arrangement = true, part
		case (part == "shared" || part == "excl" || part == "exclhost") && p.sharing == "":
			p.sharing = part
		case ok && name == "group" && identifier.MatchString(value) && p.group == "":
			p.group = value
		default:
			return p, illegalResource("place", "")
		}
	}
	return p, nil
}
