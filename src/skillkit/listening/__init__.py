"""A port of this machine -> requests, however many others knock: what the page and the MCP server share."""
