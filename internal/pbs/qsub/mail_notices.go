package qsub

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// setNotices writes which events are mailed: those of -m, or a if only -M is given.
// Without both there is no mail, unlike in OpenPBS, where the default is a.
func (s *JobSubmission) setNotices(ad *classad.Ad) {
	points := s.Mail
	if points == "" && s.MailTo != "" {
		points = "a"
	}
	if points == "" || points == "n" {
		return
	}
	ad.SetString(roost.AttrMailPoints, points)
	ad.SetString(roost.AttrMailUsers, s.MailTo)
}
