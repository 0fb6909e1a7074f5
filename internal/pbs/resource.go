package pbs

import (
	"maps"
	"slices"
	"strings"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// jobWide are the resources that a job has as a whole, with what reads their values.
var jobWide = map[string]func(v string) bool{
	"walltime": isLength, "min_walltime": isLength, "max_walltime": isLength, "soft_walltime": isLength, "cput": isLength, "pcput": isLength,
	"pmem": isSize, "pvmem": isSize, "file": isSize, "nice": isNice, "software": isText, "nodect": isCount, "app_class": isText, "place": isText, "select": isText,
	"nodes": isText, "procs": isCount, "neednodes": isText,
}

// perChunk are the resources of a chunk. Without -l select they are those of the one chunk that there is.
var perChunk = map[string]func(v string) bool{
	"ncpus": isCount, "mem": isSize, "vmem": isSize, "ngpus": isCount, "gpu_mem": isSize, "mpiprocs": isCount, "ompthreads": isCount, "host": plainName,
	"vnode": plainName, "arch": plainName, scratchLocal: isDisk,
}

// scratchLocal is the resource by which sites of PBS have the room for files on each machine counted, which Roost counts as disk.
const scratchLocal = "scratch_local"

// maxDisk bounds the disk of a chunk, as queues of Roost do.
const maxDisk = 1 << 52

func isDisk(v string) bool { n, ok := parseSize(v); return ok && n <= maxDisk }

// Builtin reports whether a resource is one that needs not be made: Roost knows what it is.
func Builtin(name string) bool { return jobWide[name] != nil || perChunk[name] != nil }

func isLength(v string) bool { _, ok := parseLength(v); return ok }
func isSize(v string) bool   { _, ok := parseSize(v); return ok }
func isText(v string) bool   { return v != "" }
func isCount(v string) bool  { _, ok := parseCount(v); return ok }
func isNice(v string) bool {
	digits := strings.TrimLeft(v, "+-")
	n, ok := parseCount(digits)
	return ok && len(v)-len(digits) <= 1 && n <= 20
}

// maxCount bounds processors, devices and processes.
const maxCount = 1 << 16

func parseCount(v string) (int, bool) {
	if v == "" || len(v) > 6 || strings.Trim(v, "0123456789") != "" {
		return 0, false
	}
	n := 0
	for _, c := range v {
		n = n*10 + int(c-'0')
	}
	return n, n <= maxCount
}

// addResources reads -l: "name=value[,name=value…]". A resource that comes again replaces its value.
func (s *submission) addResources(value string) error {
	for _, item := range List(value) {
		name, v, ok := strings.Cut(strings.TrimSpace(item), "=")
		if name = strings.TrimSpace(name); !ok || !plainName(name) {
			return illegal('l')
		}
		v = strings.TrimSpace(v)
		if perChunk[name] == nil {
			s.wanted[name] = v
			continue
		}
		first, more, _ := strings.Cut(v, ":")
		s.wanted[name] = first
		if more != "" { // some clients write "ncpus=2:mem=1gb", as in a chunk
			if own, _, ok := strings.Cut(more, "="); !ok || perChunk[own] == nil {
				return illegalResource(name, "")
			}
			if err := s.addResources(more); err != nil {
				return err
			}
		}
	}
	return nil
}

// settleResources understands what -l said.
func (s *submission) settleResources() error {
	_, chunks := s.wanted["select"]
	_, placed := s.wanted["place"]
	_, nodes := s.wanted["nodes"]
	for _, name := range sorted(s.wanted) {
		check := jobWide[name]
		if own := perChunk[name]; own != nil {
			if check = own; chunks {
				return refuse("\"-lresource=\" cannot be used with \"select\" or \"place\", resource is: "+name, exitBesideSelect)
			}
		}
		if check == nil {
			if _, counted := countOf(name, s.wanted[name]); counted || !chunks && attributeOfMachine(name, s.wanted[name]) && plainName(s.wanted[name]) {
				continue
			}
			return refuse("Unknown resource: "+name, exitUnknown)
		}
		if !check(s.wanted[name]) {
			return illegalResource(name, why[name])
		}
	}
	switch {
	case nodes && chunks:
		return refuse("Cannot be used with select or place: nodes", exitNodesToo)
	case nodes && placed:
		return refuse("Cannot be used with select or place: nodes", exitNodesToo)
	case placed && !chunks:
		return refuse("Cannot have \"place\" without \"select\"", exitPlaceOnly)
	}
	return s.settleRequest()
}

// why says what a value should have been where PBS's own words do not help: these resources are Roost's.
var why = map[string]string{"gpu_mem": "gpu_mem is memory of each GPU, as in gpu_mem=10gb"}
