#!/usr/bin/env perl
# Turns conventional commits, one per line, into release notes in Markdown: breaking changes, features, fixes and more.
# Takes a file with commits as argument, or the commits on standard input.

use strict;
use warnings;
use Getopt::Long qw(:config no_auto_abbrev no_ignore_case);

my @SECTIONS = (
    [feat => 'Features'], [fix => 'Fixes'], [perf => 'Performance'], [revert => 'Reverted'],
    [other => 'Other changes'], [quiet => 'Behind the scenes'],
);
my %QUIET = map { $_ => 1 } qw(build chore ci docs refactor style test);
my $HELP = <<'END';
usage: notes.pl [--release VERSION] [--date DATE] [--all] [FILE | - | --sample]

Turns conventional commits, one per line, into release notes in Markdown.

  FILE               commits, for instance from: git log --no-merges --format='%h %s'
                     without it, or with -, standard input is read
  --sample           use the commits that come with the skill
  --release VERSION  heading of the notes (default: Unreleased)
  --date DATE        date beside the heading
  --all              also list build, chore, ci, docs, refactor, style and test
  -h, --help         show this help

exit codes: 0 done; 1 the commits cannot be read or there are none; 2 wrong use of the command line
END

sub misuse { print STDERR "notes: $_[0] See notes.pl --help.\n"; exit 2 }
sub fail   { print STDERR "notes: $_[0]\n"; exit 1 }

# The handle to read from; a folder opens without an error, so it is refused by name.
sub handle_for {
    my ($path) = @_;
    if ($path eq '-') {
        misuse('Name a file, or send the commits on standard input.') if -t STDIN;
        return \*STDIN;
    }
    fail("cannot read $path: it is a folder.") if -d $path;
    open my $handle, '<', $path or fail("cannot read $path: $!.");
    return $handle;
}

# One commit: its section, its line in the notes, and whether it breaks something; nothing for lines to leave out.
sub commit_from {
    my ($line) = @_;
    my $hash = $line =~ s/^([0-9a-f]{7,40})\s+// ? $1 : undef;
    return if $line =~ /^Merge (?:branch|pull request|remote|tag)\b/;
    my ($section, $text, $breaks) = ('other', $line, 0);
    if ($line =~ /^([A-Za-z]+)(?:\(([^()]*)\))?(!?):\s+(\S.*)$/) {
        my ($type, $scope, $mark, $subject) = (lc $1, $2, $3, $4);
        $section = $QUIET{$type} ? 'quiet' : (grep { $_->[0] eq $type } @SECTIONS) ? $type : 'other';
        $text    = (defined $scope && length $scope ? "**$scope:** " : '') . ucfirst $subject;
        $breaks  = $mark eq '!';
    }
    $text .= " ($hash)" if defined $hash;
    return { section => $section, text => $text, breaks => $breaks };
}

sub commits_from {
    my ($handle) = @_;
    my @commits;
    while (my $line = <$handle>) {
        # Bytes that are not UTF-8 are taken as Latin-1, so that the notes are always valid text.
        utf8::decode($line);
        $line =~ s/^\x{FEFF}//;
        $line =~ s/[[:cntrl:]]+/ /g;
        $line =~ s/^\s+|\s+$//g;
        next if $line eq '';
        if ($line =~ /^BREAKING[ -]CHANGE:\s*(.*)$/) {
            fail('BREAKING CHANGE stands before any commit; it belongs below the commit it is about.') if !@commits;
            @{ $commits[-1] }{qw(breaks note)} = (1, $1);
            next;
        }
        push @commits, commit_from($line);
    }
    return @commits;
}

sub print_section {
    my ($title, @lines) = @_;
    print "\n### $title\n\n", map { "- $_\n" } @lines if @lines;
    return;
}

my %option = (release => 'Unreleased');
local $SIG{__WARN__} = sub { my ($reason) = @_; chomp $reason; misuse("$reason.") };
GetOptions(\%option, 'release=s', 'date=s', 'all', 'sample', 'help|h') or misuse('Unknown option.');
if ($option{help}) { print $HELP; exit 0 }
misuse('Only one file can be read.') if @ARGV + ($option{sample} ? 1 : 0) > 1;
local $SIG{__WARN__} = 'DEFAULT';

(my $folder = __FILE__) =~ s{[^/\\]*$}{};
my $path = $option{sample} ? "${folder}../assets/commits.txt" : @ARGV ? $ARGV[0] : '-';
my @commits = commits_from(handle_for($path));
fail('there are no commits in the input.') if !@commits;

binmode STDOUT, ':encoding(UTF-8)';
utf8::decode($_) for grep { defined } @option{qw(release date)};
print "## $option{release}", (defined $option{date} ? " - $option{date}" : ''), "\n";
my @breaking = grep { $_->{breaks} } @commits;
print_section('Breaking changes', map { $_->{text} . (length($_->{note} // '') ? "\n  $_->{note}" : '') } @breaking);
for my $section (@SECTIONS) {
    my ($type, $title) = @$section;
    my @lines = map { $_->{text} } grep { $_->{section} eq $type && !$_->{breaks} } @commits;
    if ($type eq 'quiet' && !$option{all}) {
        print STDERR 'notes: left out ' . @lines . " commits of maintenance; --all lists them.\n" if @lines;
        next;
    }
    print_section($title, @lines);
}
