package qsub

import (
	"maps"
	"slices"
	"strings"
)

func SortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// JobWideResources are the resources of a job as a whole, with the checks of their
// values.
var JobWideResources = map[string]func(v string) bool{
	"walltime": isDurationResource, "min_walltime": isDurationResource, "max_walltime": isDurationResource,
	"soft_walltime": isDurationResource, "cput": isDurationResource, "pcput": isDurationResource,
	"pmem": isSizeResource, "pvmem": isSizeResource, "file": isSizeResource, "nice": isNiceResource,
	"software": isTextResource, "nodect": isCountResource, "app_class": isTextResource, "place": isTextResource,
	"select":      isTextResource,
	imageResource: isTextResource, engineResource: isTextResource, portsResource: isTextResource,
	"nodes": isTextResource, "procs": isCountResource, "neednodes": isTextResource,
}

// ChunkResources are the resources of a chunk. Without -l select they are those of the
// only chunk.
var ChunkResources = map[string]func(v string) bool{
	"ncpus": isCountResource, "mem": isSizeResource, "vmem": isSizeResource, "ngpus": isCountResource,
	"gpu_mem": isSizeResource, "mpiprocs": isCountResource, "ompthreads": isCountResource, "host": isPlainName,
	"vnode": isPlainName, "arch": isPlainName, scratchLocal: isDiskResource,
}

// scratchLocal is the resource by which sites of PBS count disk space on each machine.
// Roost counts it as disk.
const scratchLocal = "scratch_local"

// maxDisk bounds the disk of a chunk, as queues of Roost do.
const maxDisk = 1 << 52

func isDiskResource(v string) bool { n, ok := parseSize(v); return ok && n <= maxDisk }

// IsBuiltinResource reports whether a resource exists without being defined by an
// administrator.
func IsBuiltinResource(name string) bool {
	return JobWideResources[name] != nil || ChunkResources[name] != nil
}

func isDurationResource(v string) bool { _, ok := parseDuration(v); return ok }
func isSizeResource(v string) bool     { _, ok := parseSize(v); return ok }
func isTextResource(v string) bool     { return v != "" }
func isCountResource(v string) bool    { _, ok := parseCount(v); return ok }
func isNiceResource(v string) bool {
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

// AddResources parses the value of -l: "name=value[,name=value…]". A repeated resource
// replaces its value.
func (s *JobSubmission) AddResources(value string) error {
	for _, item := range SplitList(value) {
		name, v, ok := strings.Cut(strings.TrimSpace(item), "=")
		if name = strings.TrimSpace(name); !ok || !isPlainName(name) {
			return IllegalValueError('l')
		}
		v = strings.TrimSpace(v)
		if ChunkResources[name] == nil {
			s.ResourceValues[name] = v
			continue
		}
		first, more, _ := strings.Cut(v, ":")
		s.ResourceValues[name] = first
		if more != "" { // some clients write "ncpus=2:mem=1gb", as in a chunk
			if own, _, ok := strings.Cut(more, "="); !ok || ChunkResources[own] == nil {
				return illegalResourceError(name, "")
			}
			if err := s.AddResources(more); err != nil {
				return err
			}
		}
	}
	return nil
}

// parseResources validates the resources of -l.
func (s *JobSubmission) parseResources() error {
	_, chunks := s.ResourceValues["select"]
	_, placed := s.ResourceValues["place"]
	_, nodes := s.ResourceValues["nodes"]
	for _, name := range SortedNames(s.ResourceValues) {
		check := JobWideResources[name]
		if own := ChunkResources[name]; own != nil {
			if check = own; chunks {
				return refusalf("\"-lresource=\" cannot be used with \"select\" or \"place\", resource is: "+name,
					exitInvalidBesideSelect)
			}
		}
		if check == nil {
			if _, counted := ParseCustomCount(name, s.ResourceValues[name]); counted ||
				!chunks && isMachineAttribute(name, s.ResourceValues[name]) && isPlainName(s.ResourceValues[name]) {
				continue
			}
			return refusalf("Unknown resource: "+name, exitUnknown)
		}
		if !check(s.ResourceValues[name]) {
			return illegalResourceError(name, refusalTexts[name])
		}
	}
	switch {
	case nodes && chunks:
		return refusalf("Cannot be used with select or place: nodes", exitNodesToo)
	case nodes && placed:
		return refusalf("Cannot be used with select or place: nodes", exitNodesToo)
	case placed && !chunks:
		return refusalf("Cannot have \"place\" without \"select\"", exitPlaceWithoutSelect)
	}
	return s.buildRequest()
}

// refusalTexts are the reasons for refusing Roost's own resources, for which PBS has no
// text.
var refusalTexts = map[string]string{"gpu_mem": "gpu_mem is memory of each GPU, as in gpu_mem=10gb"}
