package qsub

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// setRecord stores the request in the ad in PBS's words, by the names of PBS's
// attributes. qstat -f shows it as it was written, even a select of several kilobytes.
// Nothing else uses it.
func (s *JobSubmission) setRecord(ad *classad.Ad) {
	record, resources := classad.New(), classad.New()
	for _, name := range SortedNames(s.ResourceValues) {
		resources.SetString(name, s.ResourceValues[name])
	}
	r := &s.request
	resources.SetString("select", r.selection)
	resources.SetString("place", r.place)
	resources.SetString("nodect", strconv.Itoa(r.chunks))
	record.SetAd("Resource_List", resources)
	if s.interactive {
		record.SetString("interactive", "True")
	}
	join := s.Join
	if join == "" {
		join = "n"
	}
	record.SetString("Join_Path", join)
	for _, a := range []struct{ name, value, otherwise string }{
		{"Account_Name", s.Account, ""}, {"project", s.Project, "_pbs_project_default"},
		{"Keep_Files", s.KeepFiles, "n"}, {"Remove_Files", s.Remove, ""},
		{"Mail_Points", s.Mail, "a"}, {"Mail_Users", s.MailTo, ""}, {"Shell_Path_List", s.ShellOptions, ""},
		{"array_indices_submitted", s.ArrayRange, ""},
		{"depend", s.Attributes["depend"], ""}, {"group_list", s.Attributes["group_list"], ""},
		{"run_count", s.Attributes["run_count"], ""},
		{"sandbox", s.Attributes["sandbox"], ""}, {"stagein", s.Attributes["stagein"], ""},
		{"stageout", s.Attributes["stageout"], ""},
		{"umask", s.Attributes["umask"], ""}, {"comment", s.Attributes["comment"], ""},
		{"egroup", s.group, s.Caller.Group},
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
