#!/usr/bin/env ruby
# Works out the next semantic version from conventional commits, one per line, and the current version.
# Takes a file with commits as argument, or the commits on standard input.

require "optparse"

VERSION_FORM = /\A(v?)(\d{1,9})\.(\d{1,9})\.(\d{1,9})\z/
COMMIT_FORM = /\A(?:[0-9a-f]{7,40}\s+)?([A-Za-z]+)(?:\([^()]*\))?(!?):\s+\S/
SAMPLE = File.expand_path("../assets/commits.txt", __dir__)

def misuse(message)
  warn "next_version: #{message} See next_version.rb --help."
  exit 2
end

def failure(message)
  warn "next_version: #{message}"
  exit 1
end

def options_from(argv)
  options = {}
  parser = OptionParser.new do |flags|
    flags.banner = "usage: next_version.rb --current VERSION [FILE | - | --sample]\n\n" \
                   "Works out the next semantic version from conventional commits, one per line.\n" \
                   "FILE holds the commits; without it, or with -, standard input is read.\n\n"
    flags.on("--current VERSION", "the version released last, such as 1.2.3") { |value| options[:current] = value }
    flags.on("--sample", "use the commits that come with the skill") { options[:sample] = true }
    flags.on("-h", "--help", "show this help") { options[:help] = true }
    flags.separator "\nexit codes: 0 done; 1 the commits or the version are unusable; 2 wrong use of the command line"
  end
  files = parser.parse(argv)
  options[:help_text] = parser.help
  misuse("Only one file can be read.") if files.length + (options[:sample] ? 1 : 0) > 1
  options[:file] = options[:sample] ? SAMPLE : files.fetch(0, "-")
  options
rescue OptionParser::ParseError => e
  misuse("#{e.message}.")
end

def lines_from(path)
  misuse("Name a file, or send the commits on standard input.") if path == "-" && $stdin.tty?
  raw = path == "-" ? $stdin.binmode.read : File.binread(path)
  raw.force_encoding(Encoding::UTF_8).scrub("?").delete_prefix("\uFEFF").lines.map(&:strip).reject(&:empty?)
rescue SystemCallError => e
  failure("cannot read #{path}: #{e.class.new.message}.")
end

# What one line asks for: 3 a new major version, 2 a minor one, 1 a patch, 0 no release.
def weight_of(line)
  return 3 if line.match?(/\ABREAKING[ -]CHANGE:/)

  commit = COMMIT_FORM.match(line)
  return 0 if commit.nil?
  return 3 if commit[2] == "!"

  { "feat" => 2, "fix" => 1, "perf" => 1, "revert" => 1 }.fetch(commit[1].downcase, 0)
end

def next_version(current, weight)
  prefix, *numbers = current.captures
  major, minor, patch = numbers.map { |number| Integer(number, 10) }
  # Before 1.0.0 everything may change: a breaking change raises the minor number, a feature the patch number.
  weight -= 1 if major.zero? && weight > 1
  case weight
  when 3 then "#{prefix}#{major + 1}.0.0"
  when 2 then "#{prefix}#{major}.#{minor + 1}.0"
  when 1 then "#{prefix}#{major}.#{minor}.#{patch + 1}"
  else current[0]
  end
end

options = options_from(ARGV)
if options[:help]
  puts options[:help_text]
  exit 0
end
misuse("--current is missing.") if options[:current].nil?
current = VERSION_FORM.match(options[:current])
failure("#{options[:current].inspect} is not a version of the form 1.2.3.") if current.nil?
lines = lines_from(options[:file])
failure("there are no commits in the input.") if lines.empty?

heaviest = lines.max_by { |line| weight_of(line) }
weight = weight_of(heaviest)
if weight.zero?
  warn "next_version: no feature, fix or breaking change; the version stays."
else
  warn "next_version: decided by: #{heaviest}"
end
puts next_version(current, weight)
