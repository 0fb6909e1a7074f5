package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// The sample machine and request on which preemption expressions are tried. MY is the
// machine ad as the negotiator sees it, with the claim that would be evicted; TARGET is
// the request that wants its resources. Every attribute that such an expression may use
// is in one of the two.
const (
	policyMachine = `[
		Name = "node1"; Machine = "node1"; Arch = "x86_64"; OpSys = "LINUX"; State = "claimed"; LoadAvg = 1.0;
		Cpus = 0; TotalCpus = 8; Memory = 0; TotalMemory = 16384; Disk = 0; TotalDisk = 100000000; Gpus = 0; TotalGpus = 1;
		RemoteUser = "ann"; RemoteOwner = "ann"; RemoteGroup = ""; RemoteBand = "batch"; RemoteUserPrio = 1000.0; RemoteUserResourcesInUse = 8.0;
		RemoteJob = "1.node2"; TotalJobRuntime = 7200; TotalJobRunTime = 7200; Checkpoint = false; ClaimCpus = 1; ClaimMemory = 1024; ClaimGpus = 0;
		SubmitterUserPrio = 500.0; SubmitterUserResourcesInUse = 0.0; SubmitterUser = "bob"; SubmitterGroup = "" ]`
	policyRequest = `[
		Owner = "bob"; User = "bob"; Group = ""; Band = "batch"; Priority = 0; AppClass = "batch"; Walltime = 3600; Name = "job";
		RequestCpus = 1; RequestMemory = 1024; RequestDisk = 1024; RequestGpus = 0; Rank = 0.0;
		SubmitterUserPrio = 500.0; RemoteUserPrio = 1000.0 ]`
)

// checkPolicy refuses an expression that does not parse or has no value for an ordinary
// machine and request. Such an expression would always deny, without any message.
func checkPolicy(text string) error {
	e, err := classad.ParseExpr(text)
	if err != nil {
		return fmt.Errorf("it is no expression: %w", err)
	}
	machine, err := classad.Parse(policyMachine)
	if err != nil {
		return fmt.Errorf("sample machine: %w: %w", roost.Internal, err)
	}
	request, err := classad.Parse(policyRequest)
	if err != nil {
		return fmt.Errorf("sample request: %w: %w", roost.Internal, err)
	}
	if err := unknownAttribute(e, machine, request); err != nil {
		return err
	}
	switch v := classad.Eval(e, machine, request, &classad.EvalEnv{}); v.Kind() {
	case classad.Undefined:
		return fmt.Errorf("%s is UNDEFINED for an ordinary machine and request: guard what may be missing with "+
			"=?= or ifThenElse(isUndefined(…), …)", e)
	case classad.Error:
		return fmt.Errorf("%s is ERROR for an ordinary machine and request: look at the types of what it compares "+
			"and calculates with", e)
	case classad.Boolean, classad.Integer, classad.Real:
		return nil
	default:
		return fmt.Errorf("%s is %s for an ordinary machine and request, and neither a number nor true or false", e, v)
	}
}

// unknownAttribute names the first attribute that neither a machine nor a request has.
// Machines may have custom attributes; expressions write those with MY.
func unknownAttribute(e classad.Expr, machine, request *classad.Ad) error {
	_, target, unscoped := classad.References(e)
	names := append(slices.Clone(machine.Names()), request.Names()...)
	has := func(name string, ads ...*classad.Ad) bool {
		for _, ad := range ads {
			if _, ok := ad.Lookup(name); ok {
				return true
			}
		}
		return false
	}
	for _, name := range target {
		if !has(name, request) && !strings.HasPrefix(name, "_") {
			return fmt.Errorf("%w TARGET.%s of a request%s", errUnreadableSetting, name,
				suggestName(name, request.Names()))
		}
	}
	for _, name := range unscoped {
		if !has(name, machine, request) {
			return fmt.Errorf("%w %s of a machine or a request%s; write MY.%s for one that your machines advertise, "+
				"and guard it where some do not",
				errUnreadableSetting, name, suggestName(name, names), name)
		}
	}
	return nil
}
