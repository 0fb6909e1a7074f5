package qsub

import (
	"strconv"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// setBounds writes the bounds of the job's processes other than walltime and memory
// (OpenPBS pbs_resources(7)).
func (s *JobSubmission) setBounds(ad *classad.Ad) {
	for _, b := range []struct {
		resource, attribute string
	}{{"cput", roost.AttrCPUTime}, {"pcput", roost.AttrProcessCPU}} {
		if d, ok := parseDuration(s.ResourceValues[b.resource]); ok {
			ad.SetInt(b.attribute, wholeSeconds(d))
		}
	}
	if v := s.request.virtualMemory; v > 0 {
		ad.SetInt(roost.AttrVirtual, int64(v/roost.KiB))
	}
	for _, b := range []struct{ resource, attribute string }{
		{"pvmem", roost.AttrProcessVirtual}, {"pmem", roost.AttrProcessMemory}, {"file", roost.AttrFileSize},
	} {
		if size, ok := parseSize(s.ResourceValues[b.resource]); ok && size > 0 {
			ad.SetInt(b.attribute, int64(size/roost.KiB))
		}
	}
	if n, err := strconv.ParseInt(s.Attributes["run_count"], 10, 32); err == nil {
		ad.SetInt(roost.AttrRunCount, n)
	}
	if n, err := strconv.Atoi(s.ResourceValues["nice"]); err == nil && n != 0 {
		ad.SetInt(roost.AttrNice, int64(n))
	}
}
