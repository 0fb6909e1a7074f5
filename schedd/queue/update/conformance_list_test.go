package update

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// conformance lists cases that other systems are known by, and the test that has each of
// them. Where the place is a directory of
// this tree, the test is a function in it; where it is a file, that holds the case.
var conformance = []struct{ system, list, place, test string }{
	{"Aurora JobUpdaterIT", "SuccessfulBatchedUpdate", here, "TestAuroraSuccessfulBatchedUpdate"},
	{"Aurora JobUpdaterIT", "Rollback", here, "TestAuroraRollback"},
	{"Aurora JobUpdaterIT", "RollbackFailed", here, "TestAuroraRollbackFailed"},
	{"Aurora JobUpdaterIT", "RollbackPausedForwardUpdate", here, "TestAuroraRollbackPausedForwardUpdate"},
	{"Aurora JobUpdaterIT", "Abort", here, "TestAuroraAbort"},
	{"Aurora JobUpdaterIT", "RecoverFromStorage", "schedd/queue", "TestUpdateRolling"},
	{"Aurora JobUpdaterIT", "RecoverFromStorage", "schedd/queue", "TestRandomAndReplay"},
	{"Aurora JobUpdaterIT", "RecoverAwaitingPulseFromStorage", here, "TestAuroraRecoverAwaitingPulseFromStorage"},
	{"Aurora JobUpdaterIT", "PulsePausedUpdate", here, "TestAuroraPulsePausedUpdate"},
	{"Aurora JobUpdaterIT", "UpdateSpecificInstances", here, "TestAuroraUpdateSpecificInstances"},
	{"Aurora JobUpdaterIT", "UpdateSpecificInstancesSkipUnchanged", here,
		"TestAuroraUpdateSpecificInstancesSkipUnchanged"},
	{"Aurora JobUpdaterIT", "NoopUpdateEmptyDiff", "schedd/queue", "TestUpdateInPlace"},
	{"Aurora JobUpdaterIT", "SlowToScheduleTask", here, "TestAuroraSlowToScheduleTask"},
	{"Aurora JobUpdaterIT", "InProgressUpdate", "schedd/queue", "TestUpdateSupersedes"}, // refused there
	{"Aurora JobUpdaterIT", "SuccessfulSlaAwareUpdateWithRollback", here, "TestAuroraSLAAwareUpdateWithRollback"},
	{"Aurora JobUpdaterIT", "SuccessfulVarBatchUpdateAutoPause", here, "TestAuroraVarBatchUpdateAutoPause"},
	{"Aurora InstanceUpdaterTest", "UpdateWithResourceChange", "schedd/queue", "TestResizeInPlace"},
	{"Aurora InstanceUpdaterTest", "UpdateWithConstraintChange", "schedd/queue", "TestUpdateOfRequirements"},
	{"Aurora InstanceUpdaterTest", "StuckInPending", here, "TestAuroraStuckInPending"},
	{"Aurora InstanceUpdaterTest", "SlowToKill", here, "TestAuroraSlowToKill"},
	{"Aurora InstanceUpdaterTest", "OldTaskDies", here, "TestAuroraOldTaskDies"},
	{"Aurora InstanceUpdaterTest", "OldTaskDiesAndRescheduled", here, "TestAuroraOldTaskDiesAndRescheduled"},
	{"Aurora test_health_checker.py", "grace_period_2x_success", "startd/health/tracker_test.go", "TestOneCheck"},
	{"Aurora test_health_checker.py", "grace_period_2x_failure", "startd/health/tracker_test.go", "TestOneCheck"},
	{"Aurora test_health_checker.py", "grace_period_2x_failure_then_success", "startd/health/tracker_test.go",
		"TestOneCheck"},
	{"Aurora test_health_checker.py", "grace_period_2x_success_then_failure", "startd/health/tracker_test.go",
		"TestOneCheck"},
	{"Aurora test_health_checker.py", "ignore_failures_after_running_inside_grace_period",
		"startd/health/tracker_test.go", "TestOneCheck"},
	{"Aurora test_health_checker.py", "consecutive_failures_failfast", "startd/health/tracker_test.go", "TestOneCheck"},
	{"Aurora AuroraCronJobTest", "Overlap", "schedd/queue", "TestScheduleOverlap"},
	{"Aurora AuroraCronJobTest", "NoConcurrentRun", "schedd/queue", "TestOneRunPerInstant"},
	{"Aurora AuroraCronJobTest", "expected predictions", "internal/cron", "TestPredictions"},
	{"Nomad TestReconciler", "DestructiveMaxParallel", here, "TestNomadDestructiveMaxParallel"},
	{"Nomad TestReconciler", "Inplace_Rollback", "schedd/queue", "TestResizeInPlace"},
	{"Nomad TestReconciler", "LostNode_Canary", here, "TestNomadLostNodeCanary"},
	{"Nomad TestReconciler", "DrainNode_Canary", here, "TestNomadDrainNodeCanary"},
	{"Nomad TestReconciler", "NewCanaries_ScaleDown", "schedd/queue", "TestNomadNewCanariesScaleDown"},
	{"Nomad TestReconciler", "PromoteCanaries_CanariesEqualCount", here, "TestNomadPromoteCanariesEqualCount"},
	{"Nomad TestReconciler", "DeploymentLimit_HealthAccounting", here, "TestNomadLimitHealthAccounting"},
	{"Nomad TestReconciler", "TaintedNode_RollingUpgrade", here, "TestNomadTaintedNodeRollingUpgrade"},
	{"Nomad TestReconciler", "FailedDeployment_AutoRevert_CancelCanaries", here, "TestNomadAutoRevertCancelCanaries"},
	{"Nomad TestReconciler", "PausedOrFailedDeployment_NoMorePlacements", here, "TestNomadPausedNoMorePlacements"},
	{"Nomad TestReconciler", "PausedOrFailedDeployment_NoMorePlacements", here, "TestNomadFailedNoMorePlacements"},
	{"Nomad TestReconciler", "Client_Disconnect_Canaries", here, "TestNomadClientDisconnectCanaries"},
	{"Nomad TestDeploymentWatcher", "ProgressDeadline_LatePromote", here, "TestNomadProgressDeadlineLatePromote"},
	{"Nomad TestDeploymentWatcher", "ProgressDeadline_Canaries", here, "TestNomadProgressDeadlineCanaries"},
	{"Nomad TestDeploymentWatcher", "Watch_FailEarly", here, "TestNomadWatchFailEarly"},
	{"Nomad TestDeploymentWatcher", "RollbackFailed", here, "TestAuroraRollbackFailed"},
	{"Nomad TestTracker", "NomadChecks_Unhealthy", "startd", "TestTaskHealth"},
	// tasks have no post-stop hooks: whoever is ready counts
	{"Nomad TestTracker", "Checks_PendingPostStop_Healthy", here, "TestAuroraSuccessfulBatchedUpdate"},
	{"Nomad", "the property test of the reconciler", here, "TestRandom"},
	{"Kubernetes Deployment", "should support rollover", here, "TestKubernetesRollover"},
	{"Kubernetes Deployment", "proportional scaling", "schedd/queue", "TestUpdateCount"},
	{"Kubernetes Deployment", "iterative rollouts should eventually progress", here, "TestKubernetesIterativeRollouts"},
	{"Kubernetes Deployment", "should not disrupt a cloud load-balancer's connectivity during rollout", here,
		"TestKubernetesNoDisruptionDuringRollout"},
	{"Kubernetes DisruptionController", "too few pods, absolute => should not allow an eviction", here,
		"TestKubernetesTooFewPods"},
	{"Kubernetes DisruptionController", "should block an eviction until the PDB is updated", here,
		"TestKubernetesBlocksEvictionUntilUpdated"},
	{"Kubernetes CronJob", "ForbidConcurrent", "schedd/queue", "TestSchedule"},
	{"Kubernetes CronJob", "suspended", "schedd/queue", "TestSchedule"},
	{"Kubernetes CronJob", "remove from active list jobs that have been deleted", "schedd/queue",
		"TestScheduleRunRemoved"},
	{"Kubernetes CronJob", "ReplaceConcurrent", "schedd/queue", "TestScheduleOverlap"},
	{"Kubernetes CronJob", "more than 100 missed schedule", "schedd/queue", "TestScheduleMissed"},
}

const here = "schedd/queue/update"

// TestConformanceList checks that each test of the list is there, and that cases of a
// table are in its file.
func TestConformanceList(t *testing.T) {
	tests := map[string]map[string]bool{}
	for _, c := range conformance {
		dir, file := c.place, ""
		if strings.HasSuffix(c.place, ".go") {
			dir, file = filepath.Split(c.place)
		}
		dir = filepath.Join("..", "..", "..", dir)
		if tests[dir] == nil {
			tests[dir] = testsIn(t, dir)
		}
		if !tests[dir][c.test] {
			t.Errorf("%s %s: there is no %s in %s", c.system, c.list, c.test, c.place)
		}
		if file == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || !strings.Contains(string(text), `"`+c.list+`"`) {
			t.Errorf("%s %s is not in %s: %v", c.system, c.list, c.place, err)
		}
	}
}

// testsIn lists the tests of a directory.
func testsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no tests: %v", dir, err)
	}
	found := map[string]bool{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				found[fn.Name.Name] = true
			}
		}
	}
	return found
}
