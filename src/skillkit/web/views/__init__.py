"""The pages, and the same as JSON: a request of a browser or a program -> a response."""
