package pbs

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// setRecord keeps in the ad what was asked for in PBS's own words, by the names of PBS's
// attributes, so that qstat -f can show it as it was written (a select of several
// kilobytes, too). Nothing decides by it.
func (s *jobSubmission) setRecord(ad *classad.Ad) {
	record, resources := classad.New(), classad.New()
	for _, name := range sortedNames(s.resourceValues) {
		resources.SetString(name, s.resourceValues[name])
	}
	r := &s.request
	resources.SetString("select", r.selection)
	resources.SetString("place", r.place)
	resources.SetString("nodect", strconv.Itoa(r.chunks))
	record.SetAd("Resource_List", resources)
	if s.interactive {
		record.SetString("interactive", "True")
	}
	join := s.join
	if join == "" {
		join = "n"
	}
	record.SetString("Join_Path", join)
	for _, a := range []struct{ name, value, otherwise string }{
		{"Account_Name", s.account, ""}, {"project", s.project, "_pbs_project_default"},
		{"Keep_Files", s.keepFiles, "n"}, {"Remove_Files", s.remove, ""},
		{"Mail_Points", s.mail, "a"}, {"Mail_Users", s.mailTo, ""}, {"Shell_Path_List", s.shellOptions, ""},
		{"array_indices_submitted", s.arrayRange, ""},
		{"depend", s.attributes["depend"], ""}, {"group_list", s.attributes["group_list"], ""},
		{"run_count", s.attributes["run_count"], ""},
		{"sandbox", s.attributes["sandbox"], ""}, {"stagein", s.attributes["stagein"], ""},
		{"stageout", s.attributes["stageout"], ""},
		{"umask", s.attributes["umask"], ""}, {"comment", s.attributes["comment"], ""},
		{"egroup", s.group, s.caller.Group},
	} {
		if a.value == "" {
			a.value = a.otherwise
		}
		if a.value != "" && !strings.Contains(a.value, "\x00") {
			record.SetString(a.name, a.value)
		}
	}
	ad.SetAd(roost.AttrPBS, record)
}
