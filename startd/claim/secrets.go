package claim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/starterclient"
)

// secretRecord says which version of a secret an attempt has. Its value is only in the
// memory of its starter's mount.
type secretRecord struct {
	Name    string
	Version uint64
	Set     int64 // unix nanoseconds: when that version was set
}

// onSecrets takes in the secrets of an attempt. Before the launch they wait for it; of a
// running attempt those replace its own whose versions differ.
func (h *Runner) onSecrets(o SecretsCmd) {
	if !h.hasOpenAttempt(o.ID) {
		return
	}
	a := h.attempt
	if err := checkSecrets(o.Secrets); err != nil {
		h.machine.log.Warn("secrets refused", "attempt", a.Label(), "err", err)
		return
	}
	if a.AwaitsInput() {
		a.secrets = o.Secrets
		return
	}
	var changed []starterclient.SecretFile
	for i, r := range a.record.Secrets {
		for _, s := range o.Secrets {
			if s.GetName() == r.Name && s.GetSetNs() != r.Set && len(s.GetText()) > 0 {
				changed = append(changed, starterclient.SecretFile{Name: r.Name, Text: s.GetText()})
				a.record.Secrets[i] = secretRecord{r.Name, s.GetVersion(), s.GetSetNs()}
			}
		}
	}
	if len(changed) == 0 || h.starter == nil {
		return
	}
	if err := writeAttempt(h.attemptFile, &a.record); err != nil {
		h.machine.log.Warn("the versions of secrets cannot be written down", "attempt", a.Label(), "err", err)
	}
	a.publishSecrets()
	signals := slices.DeleteFunc(slices.Clone(o.Signals), func(n uint32) bool { return n == 0 || n > 31 })
	if err := h.starter.ReplaceSecrets(a.ref, changed, signals); err != nil {
		h.machine.log.Warn("secrets not replaced", "attempt", a.Label(), "err", err)
	}
}

// checkSecrets refuses what no honest submit node sends.
func checkSecrets(secrets []*wire.SecretText) error {
	size := 0
	for _, s := range secrets {
		if err := roost.CheckSecretName(s.GetName()); err != nil {
			return err
		}
		size += len(s.GetText())
	}
	if len(secrets) > roost.MaxJobSecrets || size > roost.MaxJobSecretBytes {
		return fmt.Errorf("%w: %d secrets of %d bytes", roost.Exhausted, len(secrets), size)
	}
	return nil
}

// takeSecrets returns the secrets that the program of an attempt names, which must have
// come. They are files, and variables of the environment as NAME=value. Nothing of the
// variables is written down, and no image of the processes is made of such an attempt.
func (a *Attempt) takeSecrets() (files []starterclient.SecretFile, variables []string, err error) {
	for k, name := range a.program.GetSecrets() {
		i := slices.IndexFunc(a.secrets, func(s *wire.SecretText) bool { return s.GetName() == name })
		if i < 0 || len(a.secrets[i].GetText()) == 0 {
			return nil, nil, fmt.Errorf("%w: its submit node has not sent its secret %q", roost.Unavailable, name)
		}
		s := a.secrets[i]
		if all := a.program.GetSecretVariables(); k < len(all) && all[k] != "" {
			if err := checkSecretVariable(all[k], s); err != nil {
				return nil, nil, err
			}
			variables = append(variables, all[k]+"="+string(s.GetText()))
		}
		files = append(files, starterclient.SecretFile{Name: name, Text: s.GetText()})
		a.record.Secrets = append(a.record.Secrets, secretRecord{name, s.GetVersion(), s.GetSetNs()})
	}
	a.secrets = nil
	a.publishSecrets()
	return files, variables, nil
}

// checkSecretVariable refuses a secret that no variable of the environment can have.
func checkSecretVariable(variable string, s *wire.SecretText) error {
	switch size := len(s.GetText()); {
	case roost.CheckSecretVariable(variable) != nil:
		return fmt.Errorf("%w: %w", errJobFault, roost.CheckSecretVariable(variable))
	case slices.Contains(s.GetText(), 0):
		return fmt.Errorf("%w: the secret %q has a zero byte, which the variable %s cannot have: read the file %s/%s, "+
			"and remove env", errJobFault, s.GetName(), variable, roost.SecretsDir, s.GetName())
	case size > roost.MaxSecretVariable:
		return fmt.Errorf("%w: the secret %q has %d bytes, and the variable %s takes %d at most: read the file %s/%s, "+
			"and remove env", errJobFault, s.GetName(), size, variable, roost.MaxSecretVariable, roost.SecretsDir,
			s.GetName())
	}
	return nil
}

// withVariables returns an environment in which these variables replace others of their
// names.
func withVariables(environment, variables []string) []string {
	if len(variables) == 0 {
		return environment
	}
	all := slices.DeleteFunc(slices.Clone(environment), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(variables, func(v string) bool { return strings.HasPrefix(v, name+"=") })
	})
	return append(all, variables...)
}

// publishSecrets tells others than the runner which versions the attempt has.
func (a *Attempt) publishSecrets() {
	var list []*wire.SecretText
	for _, r := range a.record.Secrets {
		list = append(list, &wire.SecretText{Name: r.Name, Version: r.Version, SetNs: r.Set})
	}
	a.secretVersions.Store(&list)
}

// SecretVersions returns which versions of its secrets the attempt has, without their
// text.
func (a *Attempt) SecretVersions() []*wire.SecretText {
	if list := a.secretVersions.Load(); list != nil {
		return *list
	}
	return nil
}
