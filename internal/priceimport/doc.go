// Command priceimport writes the tables of package cost/prices, from data files that name
// the origin of each number. Nobody needs it but who brings newer prices:
//
//	go run ./internal/priceimport -from DIR
//
// DIR has one JSON file for each cloud. Its numbers are copied as they are written, never
// computed. It leaves out what is not a price: zeros where a cloud charges, numbers whose
// origin is a test double, credits, and those of which the origins say that they are not
// sure; what is missing for that is listed in the table.
package main
