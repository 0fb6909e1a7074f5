package qsub

import (
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// resourceChunk is a set of resources on one machine, and the number of such sets.
type resourceChunk struct {
	count         int
	cpus          int
	gpus          int
	noGpus        bool // ngpus=0 was stated
	processes     int  // mpiprocs: lines of the node file; below 0: unset
	threads       int  // ompthreads of each process; 0: as many as CPUs
	memory        roost.Bytes
	virtualMemory roost.Bytes
	gpuMemory     roost.Bytes    // of each GPU
	disk          roost.Bytes    // for the job's files on the machine
	hosts         []string       // named machines
	counted       map[string]int // custom resources, by lower-case name
	requirements  []string       // further requirements, as expressions
	selectWords   []string       // everything but the CPUs, in the form of -l select

	customWords []string       // machine attributes that PBS does not know
	properties  []nodeProperty // words that may name a machine
}

func newChunk() resourceChunk { return resourceChunk{count: 1, cpus: 1, processes: -1} }

// selectText returns the chunk in the form of -l select. OpenPBS does so for older
// options.
func (c *resourceChunk) selectText() string {
	return strings.Join(append([]string{strconv.Itoa(c.count), "ncpus=" + strconv.Itoa(c.cpus)}, c.selectWords...), ":")
}

// parseSelect parses "[N:]name=value[:name=value…][+…]".
func parseSelect(v string) ([]resourceChunk, error) {
	bad := illegalResourceError("select", "")
	var all []resourceChunk
	for _, text := range strings.Split(v, "+") {
		c := newChunk()
		seen := map[string]bool{}
		for i, part := range strings.Split(text, ":") {
			name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
			if n, number := parseCount(name); i == 0 && !ok && number && n > 0 {
				c.count = n
				continue
			}
			if !ok || !isPlainName(name) {
				return nil, bad
			}
			if seen[name] {
				return nil, refusalf("Duplicated resource within a section of a select specification, resource is: "+
					name, exitDuplicateResource)
			}
			seen[name] = true
			if err := c.setResource(name, value); err != nil {
				return nil, err
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// parseNodes parses Torque's "N[:ppn=M][:property…][+…][#excl|#shared]". The number may
// be replaced by the name of a machine.
func parseNodes(v string) ([]resourceChunk, error) {
	bad := illegalResourceError("nodes", "")
	spec, suffix, suffixed := strings.Cut(v, "#")
	if suffixed && suffix != "shared" && suffix != "excl" {
		return nil, bad
	}
	var all []resourceChunk
	for _, text := range strings.Split(spec, "+") {
		c := newChunk()
		for i, part := range strings.Split(text, ":") {
			name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
			n, number := parseCount(name)
			switch {
			case number && i == 0 && !ok && n > 0:
				c.count = n
			case !ok && isPlainName(name) && !number:
				c.addProperty(name)
			case ok && name == "ppn":
				if n, ok := parseCount(value); ok && n > 0 {
					c.cpus, c.processes, c.selectWords = n, n, append(c.selectWords, "mpiprocs="+value)
					continue
				}
				return nil, bad
			case ok && name == "gpus":
				if err := c.setResource("ngpus", value); err != nil {
					return nil, bad
				}
			case ok && isPlainName(name):
				if err := c.setResource(name, value); err != nil {
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

// setResource sets one resource of the chunk. A resource that PBS does not know is custom
// (custom_resources.go).
func (c *resourceChunk) setResource(name, v string) error {
	if check := ChunkResources[name]; check != nil {
		if !check(v) {
			return illegalResourceError(name, refusalTexts[name])
		}
		c.setKnownResource(name, v)
		return nil
	}
	if name == engineResource && v != "" { // the job has one image for all its chunks
		return nil
	}
	truth, isTruth := parseBool(v)
	n, counted := ParseCustomCount(name, v)
	switch {
	case JobWideResources[name] != nil:
		return refusalf("Resource invalid in \"select\" specification: "+name, exitInvalidInSelect)
	case counted:
		if c.counted == nil {
			c.counted = map[string]int{}
		}
		c.counted[strings.ToLower(name)] = n
	case !isMachineAttribute(name, v):
		return refusalf("Unknown resource: "+name, exitUnknown)
	case isTruth && truth:
		c.requirements, c.customWords = append(c.requirements, "TARGET."+name+" =?= true"), append(c.customWords, name)
	case isTruth:
		c.requirements, c.customWords = append(c.requirements, "TARGET."+name+" =!= true"), append(c.customWords, name)
	default:
		c.requirements, c.customWords = append(c.requirements, "TARGET."+name+" == "+classad.StringValue(v).String()),
			append(c.customWords, name)
	}
	return nil
}

// setKnownResource sets a resource whose value was validated.
func (c *resourceChunk) setKnownResource(name, v string) {
	n, _ := parseCount(v)
	size, _ := parseSize(v)
	if name != "ncpus" {
		c.selectWords = append(c.selectWords, name+"="+v)
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
		c.virtualMemory = size
	case "gpu_mem":
		c.gpuMemory = size
	case scratchLocal:
		c.disk = size
	case "host", "vnode":
		c.hosts = append(c.hosts, v)
	case "arch":
		if !strings.EqualFold(v, "linux") { // all machines have it
			c.requirements = append(c.requirements, "TARGET.Arch == "+classad.StringValue(v).String())
		}
	}
}

// addProperty adds a single word of -l nodes. It names a machine or an attribute of
// machines.
func (c *resourceChunk) addProperty(name string) {
	c.properties, c.selectWords = append(c.properties, nodeProperty{name, len(c.selectWords)}),
		append(c.selectWords, name+"=true")
}

func isMachineName(name string) string {
	text := classad.StringValue(name).String()
	return "TARGET.Machine == " + text + " || TARGET.Name == " + text
}

// chunkPlacement is how chunks may be placed.
type chunkPlacement struct {
	arrangement string // "free", "pack", "scatter", "vscatter"
	sharingMode string // "shared", "excl", "exclhost", or "" if not stated
	group       string // resource whose value all machines must share; "" for none
}

// isExclusive reports whether the job has exclusive machines. A machine is a host with
// one vnode.
func (p *chunkPlacement) isExclusive() bool {
	return p.sharingMode == "excl" || p.sharingMode == "exclhost"
}

// groupAttribute returns the machine attribute with the values of the group.
func (p *chunkPlacement) groupAttribute() string {
	switch p.group {
	case "host", "vnode": // several on one host have names of their own
		return roost.AttrName
	case "arch":
		return roost.AttrArch
	}
	return p.group
}

// parsePlace parses
// "[free|pack|scatter|vscatter][:excl|shared|exclhost][:group=resource]".
func parsePlace(v string) (p chunkPlacement, err error) {
	p.arrangement = "free"
	arranged := false
	for _, part := range strings.Split(v, ":") {
		switch name, value, ok := strings.Cut(part, "="); {
		case slices.Contains([]string{"free", "pack", "scatter", "vscatter"}, part) && !arranged:
			arranged, p.arrangement = true, part
		case (part == "shared" || part == "excl" || part == "exclhost") && p.sharingMode == "":
			p.sharingMode = part
		case ok && name == "group" && identifier().MatchString(value) && p.group == "":
			p.group = value
		default:
			return p, illegalResourceError("place", "")
		}
	}
	return p, nil
}
