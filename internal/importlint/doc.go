// Package importlint holds nothing but the test of how the house is laid out: what may import
// what, which packages are pure, who may use which library. The order is data in
// packageOrders.go; a new package fails the test until someone gives it a place there.
package importlint
