package jobad

import (
	"fmt"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// What is done with running tasks when a secret gets a new version.
const (
	OnChangeNone    = "none"    // the file has the new version
	OnChangeSignal  = "signal"  // and the program gets a signal
	OnChangeRestart = "restart" // tasks of a service are started again, within its max_down
)

// OnChangeNames lists what can be done when a secret changes.
func OnChangeNames() []string { return []string{OnChangeNone, OnChangeSignal, OnChangeRestart} }

// SecretSpec is a secret that the tasks of a job get. The job has only its name.
type SecretSpec struct {
	Name     string // of the file, too
	Group    string // whose secret it is; empty: it is of the job's owner
	OnChange string
	Signal   uint32 // for OnChangeSignal
	Variable string // of the environment, that has the secret, too; empty: none has
}

// FullName names the secret among those that the job may have.
func (s SecretSpec) FullName() roost.SecretName {
	return roost.SecretName{Group: s.Group, Name: s.Name}
}

// hasSecretVariables reports whether the environment of a task has a secret. An image of
// the processes would have it, too, and could be read later.
func hasSecretVariables(list []SecretSpec) bool {
	return slices.ContainsFunc(list, func(s SecretSpec) bool { return s.Variable != "" })
}

// ReadSecrets reads the secrets of a job's ad.
func ReadSecrets(ad *classad.Ad) ([]SecretSpec, error) {
	r := adReader{ad: ad}
	list := r.secrets()
	return list, r.err
}

// secrets reads the names of the secrets that the tasks get.
func (r *adReader) secrets() (list []SecretSpec) {
	if !r.has(roost.AttrSecrets) {
		return nil
	}
	values, ok := r.ad.Eval(roost.AttrSecrets, nil).Elements(nil)
	if !ok || len(values) > roost.MaxJobSecrets {
		r.fail(roost.AttrSecrets, fmt.Sprintf("a list of at most %d ads is wanted", roost.MaxJobSecrets))
		return nil
	}
	for i, v := range values {
		ad, ok := v.Ad()
		if !ok {
			r.fail(roost.AttrSecrets, fmt.Sprintf("place %d is no ad", i))
			return nil
		}
		one := adReader{ad: ad}
		s := SecretSpec{one.text(roost.AttrName, ""), one.text(roost.AttrSecretGroup, ""),
			one.text(roost.AttrOnChange, OnChangeNone), uint32(one.number(roost.AttrSignal, 0, 0, 31)),
			one.text(roost.AttrVariable, "")}
		err := one.err
		switch {
		case err != nil:
		case s.FullName().Check() != nil:
			err = s.FullName().Check()
		case !slices.Contains(OnChangeNames(), s.OnChange):
			err = fmt.Errorf("%q is none of %v", s.OnChange, OnChangeNames())
		case s.OnChange == OnChangeRestart && !r.has(roost.AttrService):
			err = fmt.Errorf("only tasks of services are started again for a secret")
		case (s.Signal != 0) != (s.OnChange == OnChangeSignal):
			err = fmt.Errorf("a signal belongs to %q", OnChangeSignal)
		case slices.ContainsFunc(list, func(o SecretSpec) bool { return o.Name == s.Name }):
			err = fmt.Errorf("two secrets would be the file %q", s.Name)
		case s.Variable == "":
		case roost.CheckSecretVariable(s.Variable) != nil:
			err = roost.CheckSecretVariable(s.Variable)
		case slices.ContainsFunc(list, func(o SecretSpec) bool { return o.Variable == s.Variable }):
			err = fmt.Errorf("the variable %q has two secrets", s.Variable)
		}
		if err != nil {
			r.fail(roost.AttrSecrets, fmt.Sprintf("place %d: %v", i, err))
			return nil
		}
		list = append(list, s)
	}
	return list
}
