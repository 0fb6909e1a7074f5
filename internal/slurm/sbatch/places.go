package sbatch

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// What the record has of the machines that a job may have. OtherPlaces is the part of its
// Requirements that none of the other names stands for; it is missing where the machines
// of --nodelist are chunks of their own.
const (
	RecordFeatures = "Features"
	RecordExcluded = "ExcNodeList"
	RecordNodes    = "ReqNodeList"
	recordOther    = "OtherPlaces"
)

// setPlaces sets which machines the job may have. The record tells what is asked for.
func (s *submission) setPlaces(ad, record *classad.Ad) error {
	old := ""
	if e, ok := ad.Lookup(roost.AttrRequirements); ok {
		old = e.String()
	}
	var other []string
	if len(s.layout.hosts) == 0 && old != "" {
		other = append(other, "("+old+")")
	}
	if kind := s.layout.gpuKind; kind != "" {
		other = append(other, fmt.Sprintf("regexp(%q, join(\",\", GpuModels), \"i\")", quoteRegexp(kind)))
	}
	record.SetString(recordOther, strings.Join(other, " && "))
	if len(s.layout.hosts) > 0 && s.layout.nodes > 1 {
		record.Delete(recordOther)
		other = append(other, "("+old+")")
	}
	text, err := placeText(record, strings.Join(other, " && "))
	if err != nil || text == "" {
		return err
	}
	e, err := classad.ParseExpr(text)
	if err != nil {
		return fail("Batch job submission failed: Invalid feature specification: %v", err)
	}
	ad.Insert(roost.AttrRequirements, e)
	return nil
}

// ReplacePlaces puts what the record asks for in place of the Requirements of a job. It
// reports whether that is possible.
func ReplacePlaces(changes, record *classad.Ad) (ok bool, err error) {
	other, ok := record.Str(recordOther)
	if !ok {
		return false, nil
	}
	text, err := placeText(record, other)
	switch {
	case err != nil:
		return true, err
	case text == "":
		changes.SetValue(roost.AttrRequirements, classad.UndefinedValue())
		return true, nil
	}
	e, err := classad.ParseExpr(text)
	if err != nil {
		return true, err
	}
	changes.Insert(roost.AttrRequirements, e)
	return true, nil
}

// placeText is the condition for machines that the record and other conditions stand for.
func placeText(record *classad.Ad, other string) (string, error) {
	var conditions []string
	if other != "" {
		conditions = append(conditions, other)
	}
	if text, _ := record.Str(RecordFeatures); text != "" {
		condition, err := constraint(text)
		if err != nil {
			return "", err
		}
		conditions = append(conditions, condition)
	}
	if _, isReplaceable := record.Lookup(recordOther); isReplaceable {
		list, _ := record.Str(RecordNodes)
		hosts, err := expandHosts(list)
		if err != nil {
			return "", err
		}
		var named []string
		for _, h := range hosts {
			named = append(named, isHost(h))
		}
		if len(named) > 0 {
			conditions = append(conditions, "("+strings.Join(named, " || ")+")")
		}
	}
	list, _ := record.Str(RecordExcluded)
	hosts, err := expandHosts(list)
	if err != nil {
		return "", err
	}
	for _, h := range hosts {
		conditions = append(conditions, "!"+isHost(h))
	}
	return strings.Join(conditions, " && "), nil
}

// isHost is the condition that a machine has a name, with or without its domain.
func isHost(name string) string {
	return fmt.Sprintf("(Machine =?= %[1]q || substr(Machine, 0, %[2]d) =?= %[3]q)", name, len(name)+1, name+".")
}
