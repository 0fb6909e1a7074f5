package translate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/suggest"
)

// pbsResources are the resource names of -l.
var pbsResources = []string{"select", "place", "nodes", "ncpus", "procs", "mem", "pmem", "vmem", "pvmem", "walltime",
	"cput", "pcput", "ngpus", "gpus", "gpu_mem", "file", "host", "vnode", "arch", "mpiprocs", "ompthreads",
	"nice", "software", "feature", "features", "gres", "qos", "min_walltime", "max_walltime", "soft_walltime", "ppn",
	"naccesspolicy", "depend", "advres", "app_class", "scratch", "scratch_local", "ib", "opsys"}

// readResources reads the value of one -l.
func (x *pbsScript) readResources(v string) bool {
	carried := false
	for _, item := range qsub.SplitList(v) {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		switch name {
		case "":
		case "select", "nodes":
			carried = x.readChunks(value, name == "nodes") || carried
		case "place":
			carried = x.setPlace(value) || carried
		default:
			first, more, _ := strings.Cut(value, ":")
			if _, _, inside := strings.Cut(more, "="); !inside { // some write "ncpus=2:mem=1gb", as in a chunk
				first, more = value, ""
			}
			carried = x.setResource(name, first) || carried
			if more != "" {
				carried = x.readResources(strings.ReplaceAll(more, ":", ",")) || carried
			}
		}
	}
	return carried
}

// parseNumber parses a whole number of a resource.
func (x *pbsScript) parseNumber(name, v string, to *int) bool {
	n, err := strconv.ParseUint(v, 10, 24)
	if err != nil {
		return x.noteDirectiveLost(name + " wants a number.")
	}
	*to = int(n)
	return true
}

// setResource carries one resource over, into the present chunk.
func (x *pbsScript) setResource(name, v string) bool {
	switch name {
	case "ncpus":
		return x.parseNumber(name, v, &x.currentPart.cpus)
	case "ppn":
		if !x.parseNumber(name, v, &x.currentPart.cpus) {
			return false
		}
		x.currentPart.perNode = x.currentPart.cpus
	case "procs":
		if !x.parseNumber(name, v, &x.currentPart.cpus) {
			return false
		}
		x.currentPart.perNode = x.currentPart.cpus
		x.noteDirectiveDifference("The processes share one machine here. For several machines write count and gang, " +
			"and cpus for each.")
	case "mpiprocs":
		return x.parseNumber(name, v, &x.currentPart.perNode)
	case "ompthreads":
		n := 0
		if !x.parseNumber(name, v, &n) {
			return false
		}
		x.job.addToMap("environment", "OMP_NUM_THREADS", strconv.Itoa(n))
	case "ngpus", "gpus":
		v, _, _ = strings.Cut(v, ":")
		return x.parseNumber(name, v, &x.currentPart.gpus)
	case "mem", "pmem", "vmem", "pvmem", "file", "gpu_mem", "scratch", "scratch_local":
		return x.setAmount(name, v)
	case "walltime", "min_walltime", "max_walltime", "cput", "pcput":
		return x.setDuration(name, v)
	case "nice":
		n, err := strconv.Atoi(v)
		if err != nil {
			return x.noteDirectiveLost("nice wants a number from -20 to 19.")
		}
		x.job.setInt("nice", n)
	case "host", "vnode", "nodename":
		x.setHost(v)
	case "feature", "features":
		for _, f := range strings.FieldsFunc(v, func(r rune) bool { return r == ':' || r == ' ' }) {
			x.setFeature(f)
		}
	case "gres":
		x.limits = append(x.limits, strings.FieldsFunc(v, func(r rune) bool {
			return r == '+' || r == '%' || r == ' '
		})...)
		x.noteDirectiveDifference(countedResource)
	case "advres":
		x.job.setText("reservation", v)
	case "app_class":
		x.job.setText("app_class", v)
	default:
		return x.noteUnsupportedResource(name, v)
	}
	return true
}

const countedResource = "It becomes a limit: the administrator says with roost limit set how many there are."

// setDuration carries a duration over.
func (x *pbsScript) setDuration(name, v string) bool {
	d, err := roost.ParseDuration(v)
	if err != nil {
		return x.noteDirectiveLost("This is no length of time: it is written as seconds or hours:minutes:seconds.")
	}
	setting := map[string]string{"cput": "cpu_time", "pcput": "process_cpu_time", "walltime": "walltime",
		"max_walltime": "walltime"}[name]
	switch {
	case setting == "":
		return x.noteDirectiveLost("A job has one walltime, the longer one.")
	case d > 0:
		x.job.setText(setting, durationText(d))
	}
	if name == "max_walltime" {
		x.noteDirectiveDifference("A job has one walltime, the longer one.")
	}
	return true
}

// noteUnsupportedResource handles resources without a counterpart, and those that depend
// on the site.
func (x *pbsScript) noteUnsupportedResource(name, v string) bool {
	switch name {
	case "soft_walltime":
		return x.noteDirectiveLost("A job is ended when its walltime is over, and nothing happens before.")
	case "software":
		return x.noteDirectiveLost("It bounds nothing by itself. Where licences are counted, write limits = [\"" +
			shownLine(v) + "\"]; roost limit lists them.")
	case "qos":
		return x.noteDirectiveLost(noQOS)
	case "naccesspolicy":
		return x.noteDirectiveLost(noWasteRemark)
	case "depend":
		return x.setDependency(v)
	case "arch", "opsys":
		if strings.EqualFold(v, "linux") {
			return true // as all machines are
		}
		x.currentPart.require = append(x.currentPart.require, machineCondition{hcl: "machine." +
			map[string]string{"arch": "arch", "opsys": "os"}[name] + " == " + quotedText(v)})
		x.noteDirectiveDifference("Machines say x86_64 and linux here, as roost ads shows.")
		return true
	}
	if x.setCustomResource(name, v) {
		return true
	}
	why := fmt.Sprintf("Machines have no %s here. What they have or have not is asked for with requirements, and "+
		"what the pool has a number of with limits.", shownLine(name))
	if near := suggest.Nearest(name, pbsResources); near != "" && near != name {
		why += " Did you mean " + near + "?"
	}
	return x.noteDirectiveLost(why)
}

// setCustomResource carries over a resource that a site has defined. A number becomes a
// concurrency limit, and anything else a machine attribute.
func (x *pbsScript) setCustomResource(name, v string) bool {
	if n, err := strconv.ParseUint(v, 10, 24); err == nil && roost.IsLimitName(strings.ToLower(name)) {
		if near := suggest.Nearest(name, pbsResources); near != "" {
			return false // a misspelt name of PBS
		}
		if n > 0 {
			x.limits = append(x.limits, fmt.Sprintf("%s:%d", strings.ToLower(name), n*uint64(x.currentPart.count)))
		}
		x.noteDirectiveDifference(countedResource)
		return true
	}
	attr := isFeatureName(name)
	if attr != name || v == "" || v[0] >= '0' && v[0] <= '9' {
		return false
	}
	switch strings.ToLower(v) {
	case "true", "t", "y":
		x.setFeature(name)
	case "false", "f", "n":
		x.currentPart.require = append(x.currentPart.require, machineCondition{ad: "TARGET." + attr + " =!= true"})
		x.noteDirectiveDifference(fmt.Sprintf(featureRemark, attr))
	default:
		if suggest.Nearest(name, pbsResources) != "" {
			return false
		}
		x.currentPart.require = append(x.currentPart.require,
			machineCondition{hcl: "machine." + attr + " == " + quotedText(v)})
		x.noteDirectiveDifference(fmt.Sprintf(strings.Replace(featureRemark, "true", quotedText(shownLine(v)), 1),
			attr))
	}
	return true
}

func (x *pbsScript) setAmount(name, v string) bool {
	n, ok := parseSize(v, 1)
	if !ok || n == 0 {
		return x.noteDirectiveLost(name + " wants a size, as 8gb.")
	}
	switch name {
	case "file":
		x.job.setText("file_size", sizeText(n))
	case "scratch", "scratch_local":
		x.job.setText("disk", sizeText(n))
	case "gpu_mem":
		x.currentPart.gpuMemory = n
	case "pmem":
		x.job.setText("process_memory", sizeText(n))
		x.process = n
	case "pvmem":
		x.job.setText("process_virtual_memory", sizeText(n))
		x.processVirtual = n
	case "vmem":
		x.currentPart.virtual = n
	default:
		x.currentPart.memory = n
	}
	return true
}

func (x *pbsScript) setHost(name string) {
	x.currentPart.require = append(x.currentPart.require, machineCondition{hcl: "machine.name == " + quotedText(name)})
}

func (x *pbsScript) setFeature(name string) {
	if attr := isFeatureName(name); attr != "" {
		x.currentPart.require = append(x.currentPart.require, machineCondition{hcl: "machine." + attr})
		x.noteDirectiveDifference(fmt.Sprintf(featureRemark, attr))
	}
}

// setExclusive gives the job exclusive machines.
func (x *pbsScript) setExclusive() bool {
	x.job.setSource("exclusive", "true")
	return true
}

// setPlace reads a placement such as place=scatter:excl.
func (x *pbsScript) setPlace(v string) bool {
	carried := false
	for _, part := range strings.Split(v, ":") {
		switch {
		case part == "free" || part == "pack" || part == "scatter" || part == "vscatter":
			x.arrangement, carried = part, true
		case part == "shared":
			carried = true // the default
		case part == "excl" || part == "exclhost":
			carried = x.setExclusive()
		case strings.HasPrefix(part, "group="):
			carried = x.setPlacementSet(strings.TrimPrefix(part, "group="))
		default:
			x.noteDirectiveLost("This placement is not known.")
		}
	}
	return carried
}

// setPlacementSet sets the attribute that the job's machines must have in common.
func (x *pbsScript) setPlacementSet(name string) bool {
	switch name {
	case "host", "vnode":
		name = roost.AttrName
	case "arch":
		name = roost.AttrArch
	default:
		x.noteDirectiveDifference("Machines have it as an attribute of that name, which their administrator adds in " +
			"the node file; see roost-node(5).")
	}
	x.group = name
	return true
}
