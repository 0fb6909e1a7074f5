package document

import (
	"time"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// Explanation is why a job does not run, as roost why prints it.
type Explanation struct {
	Version          int                 `json:"v"`
	Job              Job                 `json:"job"`
	Summary          string              `json:"summary"`
	Brief            string              `json:"brief"`
	Machines         uint32              `json:"machines"`
	Waiting          uint32              `json:"waiting"`
	Ahead            uint32              `json:"ahead"`
	AheadHigherBands uint32              `json:"ahead_of_higher_bands"`
	AheadSameUser    uint32              `json:"ahead_of_its_user"`
	Start            string              `json:"start"`
	Certainty        string              `json:"certainty"`
	Basis            string              `json:"basis"`
	Reasons          []ExplanationReason `json:"reasons"`
	Conditions       []MatchCondition    `json:"conditions"`
	Conflicts        []string            `json:"conflicts"`
	Nearest          []string            `json:"nearest"`
	Advice           []string            `json:"advice"`
}

// ExplanationReason is one reason, and for how many machines it holds.
type ExplanationReason struct {
	Kind     string `json:"kind"`
	Text     string `json:"text"`
	Machines uint32 `json:"machines"`
}

// MatchCondition is one conjunct of the requirements of a job or of the machines. The
// numbers are those of machines for which it has each value.
type MatchCondition struct {
	Text      string `json:"text"`
	Means     string `json:"means,omitempty"`
	Own       bool   `json:"own"`
	True      uint32 `json:"true"`
	False     uint32 `json:"false"`
	Undefined uint32 `json:"undefined"`
	Error     uint32 `json:"error"`
	Alone     uint32 `json:"alone"`
}

// ExplanationOf returns the document of an explanation.
func ExplanationOf(reply *scheddapi.WhyReply) Explanation {
	s, x := reply.GetStatus(), reply.GetExplanation()
	e := Explanation{
		Version: Version, Job: JobOf(s, s.GetState() != ""), Summary: reply.GetSummary(), Brief: x.GetBrief(),
		Machines: x.GetMachines(), Waiting: x.GetWaiting(), Ahead: x.GetAhead(), AheadHigherBands: x.GetHigher(),
		AheadSameUser: x.GetOwn(), Start: Timestamp(x.GetStart() * int64(time.Second)), Certainty: x.GetCertainty(),
		Basis: x.GetBasis(), Reasons: make([]ExplanationReason, len(x.GetReasons())),
		Conditions: make([]MatchCondition, len(x.GetConditions())), Conflicts: textList(x.GetConflicts()),
		Nearest: textList(x.GetNearest()), Advice: textList(Advice(reply)),
	}
	for i, r := range x.GetReasons() {
		e.Reasons[i] = ExplanationReason{r.GetKind(), r.GetText(), r.GetMachines()}
	}
	for i, n := range x.GetConditions() {
		e.Conditions[i] = MatchCondition{n.GetText(), n.GetMeans(), n.GetOwn(), n.GetPass(), n.GetFail(),
			n.GetUndefined(), n.GetError(), n.GetAlone()}
	}
	return e
}

// Advice returns what the schedd and the negotiator recommend, each thing once.
func Advice(reply *scheddapi.WhyReply) []string {
	var list []string
	seen := map[string]bool{}
	for _, a := range append(reply.GetAdvice(), reply.GetExplanation().GetAdvice()...) {
		if !seen[a] {
			seen[a] = true
			list = append(list, a)
		}
	}
	return list
}

// textList returns a list that JSON shows as one even if it is empty.
func textList(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
