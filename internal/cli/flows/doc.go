// Package flows has the commands for flows: DAG files, in which nodes run jobs in an
// order. It also has HTCondor's condor_submit_dag and
// condor_dag_checker, which are links to roost.
package flows
