package jobad

import (
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// noProject is what PBS records for a job without a project.
const noProject = "_pbs_project_default"

// Project returns what a job is charged to: the account of qsub -A, or the project of
// qsub -P. Empty: it has none.
func Project(ad *classad.Ad) string {
	pbs, there := ad.Sub(roost.AttrPBS)
	if !there {
		return ""
	}
	if account, ok := pbs.Str("Account_Name"); ok {
		return account
	}
	if project, ok := pbs.Str("project"); ok && project != noProject {
		return project
	}
	return ""
}
