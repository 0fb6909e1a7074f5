package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// SecretList is the secrets that jobs of the user may have. No negotiator sends values.
type SecretList struct {
	Version     int           `json:"v"`
	Secrets     []SecretUse   `json:"secrets"`
	Unreachable []Unreachable `json:"unreachable,omitempty"` // their jobs are missing
}

// SecretUse is a secret, and the jobs that use it.
type SecretUse struct {
	ledger.SecretInfo
	// jobs that have not ended and name it: the owner's, and with a secret of a group
	// those of all
	Jobs     []string `json:"jobs"`
	MoreJobs int      `json:"more_jobs,omitempty"` // further ones
}

// Bounds on the jobs of a list of secrets.
const (
	maxSecretJobs  = 20   // of one secret
	maxJobsWithAny = 5000 // that are looked at
)

// Latest returns the latest version, nil if none is known.
func (s *SecretUse) Latest() *ledger.SecretVersion {
	if len(s.Versions) == 0 {
		return nil
	}
	return &s.Versions[len(s.Versions)-1]
}

// ListSecrets lists the user's secrets and those of the user's groups: everything but the
// values.
func ListSecrets(c *route.Call) (any, error) {
	l := SecretList{Version: document.Version, Secrets: []SecretUse{}}
	var infos []ledger.SecretInfo
	if err := showCell(c, string(ledger.KindSecret), &infos); err != nil {
		return l, err
	}
	if len(infos) == 0 {
		return l, nil
	}
	for _, s := range infos {
		l.Secrets = append(l.Secrets, SecretUse{SecretInfo: s, Jobs: []string{}})
	}
	ofGroup := slices.ContainsFunc(infos, func(s ledger.SecretInfo) bool { return s.Group != "" })
	query := &wire.QueryRequest{Ads: true, Newest: true, Limit: maxJobsWithAny,
		Selection: &wire.Selection{Constraint: roost.AttrSecrets + " =!= undefined", Mine: !ofGroup}}
	var err error
	l.Unreachable, err = queryPool(c, &wire.PoolQuery{Query: query}, func(s *wire.JobStatus) error {
		if !document.IsFinal(s) {
			l.addJob(s)
		}
		return nil
	})
	for _, u := range l.Unreachable {
		c.NoteUnreachable(u.Node)
	}
	return l, err
}

// addJob notes which secrets a job uses. A user of the same name at another node may be
// somebody else, whose secrets have the same names.
func (l *SecretList) addJob(s *wire.JobStatus) {
	ad, err := classad.Parse(s.GetAd())
	if err != nil {
		return
	}
	names, err := jobad.ReadSecrets(ad)
	if err != nil {
		return
	}
	host, ok := ad.Str(roost.AttrSubmitHost)
	if id, err := roost.ParseJobID(s.GetId(), ""); !ok && err == nil {
		host = id.Host
	}
	for _, name := range names {
		i := slices.IndexFunc(l.Secrets, func(o SecretUse) bool {
			isOwn := o.Group == "" && o.Owner == s.GetOwner() && slices.Contains(o.Hosts, host)
			return o.Name == name.FullName().String() && (o.Group != "" || isOwn)
		})
		switch {
		case i < 0:
		case len(l.Secrets[i].Jobs) == maxSecretJobs:
			l.Secrets[i].MoreJobs++
		default:
			l.Secrets[i].Jobs = append(l.Secrets[i].Jobs, s.GetId())
		}
	}
}

// Holders says whose jobs may have it.
func (s *SecretUse) Holders() string {
	if s.Group != "" {
		return fmt.Sprintf("all in the group %s", s.Group)
	}
	return fmt.Sprintf("%s at %s", s.Owner, strings.Join(s.Hosts, ", "))
}
