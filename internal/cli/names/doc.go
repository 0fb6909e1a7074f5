// Package names has the commands for the names of services: roost names lists and watches
// where the tasks of a service are reached, and writes configurations of load balancers.
package names
