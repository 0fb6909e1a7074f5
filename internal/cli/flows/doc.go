// Package flows has the commands for flows: DAG files, in which nodes run jobs in an
// order. It also has HTCondor's condor_dag_checker, which is a link to roost.
package flows
