package translate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/pbs"
	"github.com/roost-batch/roost/internal/spell"
)

// pbsResources are the names that -l knows.
var pbsResources = []string{"select", "place", "nodes", "ncpus", "procs", "mem", "pmem", "vmem", "pvmem", "walltime", "cput", "pcput", "ngpus", "gpus", "gpu_mem", "file", "host", "vnode", "arch", "mpiprocs", "ompthreads",
	"nice", "software", "feature", "features", "gres", "qos", "min_walltime", "max_walltime", "ppn", "naccesspolicy", "depend", "advres", "app_class", "scratch", "ib", "opsys"}

// resources reads the value of one -l.
func (x *pbsScript) resources(v string) bool {
	carried := false
	for _, item := range pbs.List(v) {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		switch name {
		case "":
		case "select", "nodes":
			carried = x.chunks(value, name == "nodes") || carried
		case "place":
			carried = x.place(value) || carried
		default:
			carried = x.resource(name, value, 1) || carried
		}
	}
	return carried
}

// chunks reads select=2:ncpus=4:mem=8gb+1:ncpus=1 and nodes=2:ppn=4:gpus=1. The tasks that start together are all alike here, so chunks that
// differ become as many of the largest.
func (x *pbsScript) chunks(v string, nodes bool) bool {
	x.layoutAt = x.d
	list := strings.Split(v, "+")
	total := 0
	var most pbsScript
	for _, c := range list {
		n, ok := x.chunk(c, nodes)
		if !ok {
			return false
		}
		total += n
		most.cpus, most.perNode, most.gpus, most.memory = max(most.cpus, x.cpus), max(most.perNode, x.perNode), max(most.gpus, x.gpus), max(most.memory, x.memory)
	}
	if len(list) > 1 {
		x.remark("Tasks that start together are all alike here: each asks for the most that one of these chunks does.")
		x.cpus, x.perNode, x.gpus, x.memory = most.cpus, most.perNode, most.gpus, most.memory
	}
	x.nodes = total
	return true
}

func (x *pbsScript) chunk(c string, nodes bool) (n int, ok bool) {
	n = 1
	c, mark, marked := strings.Cut(c, "#")
	if marked && mark == "excl" {
		x.alone()
	}
	for i, part := range strings.Split(c, ":") {
		name, value, set := strings.Cut(strings.TrimSpace(part), "=")
		number, err := strconv.ParseUint(name, 10, 16)
		switch {
		case i == 0 && !set && err == nil:
			if number == 0 || number > 2048 {
				return 0, x.refuse("From 1 to 2048 tasks start together.")
			}
			n = int(number)
		case !set && nodes && name == "shared": // as it is done in any case
		case !set && nodes && (name == "excl" || name == "exclusive"):
			x.alone()
		case !set && nodes && i == 0 && hostName.MatchString(name):
			x.host(name)
		case !set && nodes && hostName.MatchString(name):
			x.feature(name)
		case !set:
			return 0, x.refuse("This chunk is not understood.")
		default:
			x.resource(name, value, n)
		}
	}
	return n, true
}

// resource carries one resource over. chunks is 1, or how many chunks ask for it.
func (x *pbsScript) resource(name, v string, chunks int) bool {
	number := func(to *int) bool {
		n, err := strconv.ParseUint(v, 10, 24)
		if err != nil {
			return x.refuse(name + " wants a number.")
		}
		*to = int(n)
		return true
	}
	switch name {
	case "ncpus":
		return number(&x.cpus)
	case "ppn":
		if !number(&x.cpus) {
			return false
		}
		x.perNode = x.cpus
	case "procs":
		if !number(&x.cpus) {
			return false
		}
		x.remark("The processes share one machine here. For several machines write count and gang, and cpus for each.")
	case "mpiprocs":
		return number(&x.perNode)
	case "ompthreads":
		n := 0
		if !number(&n) {
			return false
		}
		x.j.add("environment", "OMP_NUM_THREADS", strconv.Itoa(n))
	case "ngpus", "gpus":
		v, _, _ = strings.Cut(v, ":")
		return number(&x.gpus)
	case "mem", "pmem", "vmem", "pvmem", "file", "gpu_mem", "scratch":
		return x.amount(name, v)
	case "walltime":
		d, err := roost.ParseDuration(v)
		if err != nil {
			return x.refuse("This is no length of time: it is written as seconds or hours:minutes:seconds.")
		}
		if d > 0 {
			x.j.setText("walltime", length(d))
		}
	case "host", "vnode", "nodename":
		x.host(v)
	case "feature", "features":
		for _, f := range strings.FieldsFunc(v, func(r rune) bool { return r == ':' || r == ' ' }) {
			x.feature(f)
		}
	case "software", "gres":
		x.j.set("limits", texts(strings.FieldsFunc(v, func(r rune) bool { return r == '+' || r == '%' || r == ' ' })))
		x.remark("It becomes a limit: the administrator says with roost limit set how many there are.")
	case "advres":
		x.j.setText("reservation", v)
	case "app_class":
		x.refuse("Write app_class = \"" + shown(v) + "\" into the job.")
		return false
	default:
		return x.unlike(name, v)
	}
	return true
}

// unlike is for resources without a counterpart.
func (x *pbsScript) unlike(name, v string) bool {
	switch name {
	case "cput", "pcput":
		return x.refuse("There is no limit on CPU time; walltime limits the time that it runs. ulimit -t in the script limits that of a process.")
	case "min_walltime", "max_walltime":
		return x.refuse("A job has one walltime.")
	case "nice":
		return x.refuse("How much of a processor a task gets, its cpus say.")
	case "qos":
		return x.refuse(noQOS)
	case "naccesspolicy":
		return x.refuse(noWaste)
	case "depend":
		return x.refuse(dependsOn(v, ","))
	case "arch", "opsys":
		x.require = append(x.require, condition{hcl: "machine." + map[string]string{"arch": "arch", "opsys": "os"}[name] + " == " + quoted(v)})
		x.remark("Machines say x86_64 and linux here, as roost ads shows.")
		return true
	}
	if strings.EqualFold(v, "true") {
		if attr := featureName(name); attr != "" {
			x.feature(attr)
			return true
		}
	}
	why := fmt.Sprintf("Machines have no %s here. What they have or have not is asked for with requirements, and what the pool has a number of with limits.", shown(name))
	if near := spell.Nearest(name, pbsResources); near != "" && near != name {
		why += " Did you mean " + near + "?"
	}
	return x.refuse(why)
}

func (x *pbsScript) amount(name, v string) bool {
	n, ok := sizeIn(v, 1)
	if !ok || n == 0 {
		return x.refuse(name + " wants a size, as 8gb.")
	}
	switch name {
	case "file", "scratch":
		x.j.setText("disk", size(n))
	case "gpu_mem":
		x.j.setText("gpu_memory", size(n))
	case "pmem":
		x.memory = n * roost.Bytes(max(x.cpus, x.perNode, 1))
		x.remark("It is memory of each process; memory is that of all processes of a machine.")
	case "vmem", "pvmem":
		if x.memory == 0 && x.total == 0 {
			x.total = n
		}
		x.remark("Address space is not limited, only memory that is used.")
	default:
		if strings.Contains(x.d.args, "select") {
			x.memory = n
		} else {
			x.total = n
		}
	}
	return true
}

func (x *pbsScript) host(name string) {
	x.require = append(x.require, condition{hcl: "machine.name == " + quoted(name)})
}

func (x *pbsScript) feature(name string) {
	if attr := featureName(name); attr != "" {
		x.require = append(x.require, condition{hcl: "machine." + attr})
		x.remark(fmt.Sprintf(featureRemark, attr))
	}
}

// alone has the job have its machines alone.
func (x *pbsScript) alone() bool {
	x.j.set("exclusive", "true")
	return true
}

// place reads place=scatter:excl.
func (x *pbsScript) place(v string) bool {
	carried := false
	for _, part := range strings.Split(v, ":") {
		switch {
		case part == "free" || part == "pack" || part == "shared" || part == "scatter" || part == "vscatter":
			carried = true // as it is done in any case
		case part == "excl" || part == "exclhost":
			carried = x.alone()
		case strings.HasPrefix(part, "group="):
			x.j.setText("together", strings.TrimPrefix(part, "group="))
			x.remark("Machines have it as an attribute of that name, which their administrator adds in the node file; see roost-node(5).")
			carried = true
		default:
			x.refuse("This placement is not known.")
		}
	}
	return carried
}
