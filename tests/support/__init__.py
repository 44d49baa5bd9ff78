"""What several tests need: folders, machines, people who answer, servers, terminals."""
