package qsub

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// setNotices says in the ad what somebody is to be told of: what -m says, or a where only
// -M says whom. Without both it is nothing, where OpenPBS has a: who wants mail says so.
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
