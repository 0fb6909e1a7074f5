package pbs

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// applyResources reads -l. Each resource replaces what was said of it before.
func (s *submission) applyResources(value string) error {
	for _, item := range list(value) {
		name, v, _ := strings.Cut(strings.TrimSpace(item), "=")
		switch name {
		case "select":
			if err := s.chunk(v); err != nil {
				return err
			}
			continue
		case "nodes":
			if err := s.nodes(v); err != nil {
				return err
			}
			continue
		case "place":
			continue // one chunk lies on one machine whatever its place
		}
		for i, part := range strings.Split(item, ":") { // "ncpus=2:mem=1gb" as well as a comma between them
			name, v, ok := strings.Cut(strings.TrimSpace(part), "=")
			if i > 0 && !ok || name == "walltime" || name == "cput" {
				name, v, _ = strings.Cut(strings.TrimSpace(item), "=") // 01:00:00
				if err := s.resource(name, v); err != nil {
					return err
				}
				break
			}
			if err := s.resource(name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// chunk reads "[N:]ncpus=2:mem=1gb". A job has one chunk here: it is one process on one machine.
func (s *submission) chunk(v string) error {
	if strings.Contains(v, "+") {
		return refuse("a job of more than one chunk is not supported yet: select one chunk", exitIllegalValue)
	}
	for i, part := range strings.Split(v, ":") {
		name, value, ok := strings.Cut(part, "=")
		if n, err := strconv.Atoi(name); i == 0 && !ok && err == nil {
			if n != 1 {
				return refuse("a job of more than one chunk is not supported yet: select one chunk", exitIllegalValue)
			}
			continue
		}
		if !ok {
			return refuse("Illegal attribute or resource value Resource_List.select", exitIllegalValue)
		}
		if err := s.resource(name, value); err != nil {
			return err
		}
	}
	return nil
}

// nodes reads "1:ppn=4".
func (s *submission) nodes(v string) error {
	if strings.Contains(v, "+") {
		return refuse("a job on more than one node is not supported yet: ask for nodes=1", exitIllegalValue)
	}
	v, _, _ = strings.Cut(v, "#")
	for i, part := range strings.Split(v, ":") {
		name, value, ok := strings.Cut(part, "=")
		n, err := strconv.Atoi(name)
		switch {
		case i == 0 && err == nil && n == 1:
		case i == 0 && err == nil:
			return refuse("a job on more than one node is not supported yet: ask for nodes=1", exitIllegalValue)
		case ok && name == "ppn":
			if err := s.resource("ncpus", value); err != nil {
				return err
			}
		case ok && (name == "gpus" || name == "ncpus" || name == "mem" || name == "gpu_mem"):
			if err := s.resource(strings.Replace(name, "gpus", "ngpus", 1), value); err != nil {
				return err
			}
		default:
			return refuse("Illegal attribute or resource value Resource_List.nodes", exitIllegalValue)
		}
	}
	return nil
}

// resource sets one resource.
func (s *submission) resource(name, v string) error {
	bad := refuse("Illegal attribute or resource value Resource_List."+name, exitIllegalValue)
	switch name {
	case "ncpus", "ngpus":
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 1<<16 {
			return bad
		}
		if name == "ncpus" {
			s.cpus = n
		} else {
			s.gpus, s.noGpus = n, n == 0
		}
	case "gpu_mem":
		n, err := roost.ParseBytes(v)
		if err != nil || n == 0 {
			return refuse(bad.Text[len("qsub: "):]+": gpu_mem is memory of each GPU, as in gpu_mem=10gb", exitIllegalValue)
		}
		s.gpuMemory = n
	case "app_class":
		if v != roost.AppBatch && v != roost.AppStream {
			return refuse(bad.Text[len("qsub: "):]+": app_class is batch or stream", exitIllegalValue)
		}
		s.class = v
	case "mem", "pmem":
		n, err := roost.ParseBytes(v)
		if err != nil || n < 0 {
			return bad
		}
		s.memory = n
	case "walltime":
		d, err := roost.ParseDuration(v)
		if err != nil {
			return bad
		}
		s.walltime = d
	case "host", "vnode":
		if !plainName(v) {
			return bad
		}
		s.host = v
	case "arch":
	case "cput", "pcput":
		if _, err := roost.ParseDuration(v); err != nil {
			return bad
		}
	case "vmem", "pvmem", "file":
		if _, err := roost.ParseBytes(v); err != nil {
			return bad
		}
	case "mpiprocs", "ompthreads", "nice", "software", "min_walltime", "max_walltime", "nodect", "procs", "prologue", "epilogue":
	default:
		return refuse("Unknown resource: "+name, exitUnknown)
	}
	return nil
}

// plainName reports whether s is made of the characters that PBS allows in names.
func plainName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+.-") == ""
}
