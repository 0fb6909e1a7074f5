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
	"nice", "software", "feature", "features", "gres", "qos", "min_walltime", "max_walltime", "soft_walltime", "ppn", "naccesspolicy", "depend", "advres", "app_class", "scratch", "scratch_local", "ib", "opsys"}

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
			first, more, _ := strings.Cut(value, ":")
			if _, _, inside := strings.Cut(more, "="); !inside { // some write "ncpus=2:mem=1gb", as in a chunk
				first, more = value, ""
			}
			carried = x.resource(name, first) || carried
			if more != "" {
				carried = x.resources(strings.ReplaceAll(more, ":", ",")) || carried
			}
		}
	}
	return carried
}

// number reads a whole number of a resource.
func (x *pbsScript) number(name, v string, to *int) bool {
	n, err := strconv.ParseUint(v, 10, 24)
	if err != nil {
		return x.refuse(name + " wants a number.")
	}
	*to = int(n)
	return true
}

// resource carries one resource over, into the chunk that is being read.
func (x *pbsScript) resource(name, v string) bool {
	switch name {
	case "ncpus":
		return x.number(name, v, &x.now.cpus)
	case "ppn":
		if !x.number(name, v, &x.now.cpus) {
			return false
		}
		x.now.perNode = x.now.cpus
	case "procs":
		if !x.number(name, v, &x.now.cpus) {
			return false
		}
		x.now.perNode = x.now.cpus
		x.remark("The processes share one machine here. For several machines write count and gang, and cpus for each.")
	case "mpiprocs":
		return x.number(name, v, &x.now.perNode)
	case "ompthreads":
		n := 0
		if !x.number(name, v, &n) {
			return false
		}
		x.j.add("environment", "OMP_NUM_THREADS", strconv.Itoa(n))
	case "ngpus", "gpus":
		v, _, _ = strings.Cut(v, ":")
		return x.number(name, v, &x.now.gpus)
	case "mem", "pmem", "vmem", "pvmem", "file", "gpu_mem", "scratch", "scratch_local":
		return x.amount(name, v)
	case "walltime", "min_walltime", "max_walltime", "cput", "pcput":
		return x.length(name, v)
	case "nice":
		n, err := strconv.Atoi(v)
		if err != nil {
			return x.refuse("nice wants a number from -20 to 19.")
		}
		x.j.setInt("nice", n)
	case "host", "vnode", "nodename":
		x.host(v)
	case "feature", "features":
		for _, f := range strings.FieldsFunc(v, func(r rune) bool { return r == ':' || r == ' ' }) {
			x.feature(f)
		}
	case "gres":
		x.limits = append(x.limits, strings.FieldsFunc(v, func(r rune) bool { return r == '+' || r == '%' || r == ' ' })...)
		x.remark(counted)
	case "advres":
		x.j.setText("reservation", v)
	case "app_class":
		x.j.setText("app_class", v)
	default:
		return x.unlike(name, v)
	}
	return true
}

const counted = "It becomes a limit: the administrator says with roost limit set how many there are."

// length carries a length of time over.
func (x *pbsScript) length(name, v string) bool {
	d, err := roost.ParseDuration(v)
	if err != nil {
		return x.refuse("This is no length of time: it is written as seconds or hours:minutes:seconds.")
	}
	setting := map[string]string{"cput": "cpu_time", "pcput": "process_cpu_time", "walltime": "walltime", "max_walltime": "walltime"}[name]
	switch {
	case setting == "":
		return x.refuse("A job has one walltime, the longer one.")
	case d > 0:
		x.j.setText(setting, length(d))
	}
	if name == "max_walltime" {
		x.remark("A job has one walltime, the longer one.")
	}
	return true
}

// unlike is for resources without a counterpart, and for those that only administrators know.
func (x *pbsScript) unlike(name, v string) bool {
	switch name {
	case "soft_walltime":
		return x.refuse("A job is ended when its walltime is over, and nothing happens before.")
	case "software":
		return x.refuse("It bounds nothing by itself. Where licences are counted, write limits = [\"" + shown(v) + "\"]; roost limit lists them.")
	case "qos":
		return x.refuse(noQOS)
	case "naccesspolicy":
		return x.refuse(noWaste)
	case "depend":
		return x.depend(v)
	case "arch", "opsys":
		if strings.EqualFold(v, "linux") {
			return true // as all machines are
		}
		x.now.require = append(x.now.require, condition{hcl: "machine." + map[string]string{"arch": "arch", "opsys": "os"}[name] + " == " + quoted(v)})
		x.remark("Machines say x86_64 and linux here, as roost ads shows.")
		return true
	}
	if x.custom(name, v) {
		return true
	}
	why := fmt.Sprintf("Machines have no %s here. What they have or have not is asked for with requirements, and what the pool has a number of with limits.", shown(name))
	if near := spell.Nearest(name, pbsResources); near != "" && near != name {
		why += " Did you mean " + near + "?"
	}
	return x.refuse(why)
}

// custom carries a resource over that a site has made: a number is counted for the pool, and anything else is an attribute of machines.
func (x *pbsScript) custom(name, v string) bool {
	if n, err := strconv.ParseUint(v, 10, 24); err == nil && roost.LicenceName(strings.ToLower(name)) {
		if near := spell.Nearest(name, pbsResources); near != "" {
			return false // a word of PBS, with a mistake in it
		}
		if n > 0 {
			x.limits = append(x.limits, fmt.Sprintf("%s:%d", strings.ToLower(name), n*uint64(x.now.count)))
		}
		x.remark(counted)
		return true
	}
	attr := featureName(name)
	if attr != name || v == "" || v[0] >= '0' && v[0] <= '9' {
		return false
	}
	switch strings.ToLower(v) {
	case "true", "t", "y":
		x.feature(name)
	case "false", "f", "n":
		x.now.require = append(x.now.require, condition{ad: "TARGET." + attr + " =!= true"})
		x.remark(fmt.Sprintf(featureRemark, attr))
	default:
		if spell.Nearest(name, pbsResources) != "" {
			return false
		}
		x.now.require = append(x.now.require, condition{hcl: "machine." + attr + " == " + quoted(v)})
		x.remark(fmt.Sprintf(strings.Replace(featureRemark, "true", quoted(shown(v)), 1), attr))
	}
	return true
}

func (x *pbsScript) amount(name, v string) bool {
	n, ok := sizeIn(v, 1)
	if !ok || n == 0 {
		return x.refuse(name + " wants a size, as 8gb.")
	}
	switch name {
	case "file":
		x.j.setText("file_size", size(n))
	case "scratch", "scratch_local":
		x.j.setText("disk", size(n))
	case "gpu_mem":
		x.now.gpuMemory = n
	case "pmem":
		x.j.setText("process_memory", size(n))
		x.process = n
	case "pvmem":
		x.j.setText("process_virtual_memory", size(n))
		x.processVirtual = n
	case "vmem":
		x.now.virtual = n
	default:
		x.now.memory = n
	}
	return true
}

func (x *pbsScript) host(name string) {
	x.now.require = append(x.now.require, condition{hcl: "machine.name == " + quoted(name)})
}

func (x *pbsScript) feature(name string) {
	if attr := featureName(name); attr != "" {
		x.now.require = append(x.now.require, condition{hcl: "machine." + attr})
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
		case part == "free" || part == "pack" || part == "scatter" || part == "vscatter":
			x.arrangement, carried = part, true
		case part == "shared":
			carried = true // as it is done in any case
		case part == "excl" || part == "exclhost":
			carried = x.alone()
		case strings.HasPrefix(part, "group="):
			carried = x.together(strings.TrimPrefix(part, "group="))
		default:
			x.refuse("This placement is not known.")
		}
	}
	return carried
}

// together says in what the machines of the job are alike.
func (x *pbsScript) together(name string) bool {
	switch name {
	case "host", "vnode":
		name = roost.AttrName
	case "arch":
		name = roost.AttrArch
	default:
		x.remark("Machines have it as an attribute of that name, which their administrator adds in the node file; see roost-node(5).")
	}
	x.group = name
	return true
}
